#include "ops/losses.h"

namespace dtrain::test {
namespace {

/// Returns 1 minus the overlap of targets and predictions, averaged over the classes. These are the formulas
/// of Keras's dice and tversky.
double overlap_loss(const RowLossSpec& spec, const double* x, const double* t, int64_t n) {
  double loss = 0;
  for (int64_t k = 0; k < spec.classes; ++k) {
    double both = 0, missed = 0, wrong = 0;
    for (int64_t c = k; c < n; c += spec.classes) {
      both += x[c] * t[c];
      missed += (1 - x[c]) * t[c];
      wrong += x[c] * (1 - t[c]);
    }
    if (spec.kind == RowLossSpec::Kind::dice)
      loss += 1 - 2 * both / (2 * both + missed + wrong + 1e-7);
    else
      loss += 1 - both / (both + static_cast<double>(spec.alpha) * missed +
                          static_cast<double>(spec.beta) * wrong + 1e-7);
  }
  return loss / static_cast<double>(spec.classes);
}

/// Returns the loss of one row in double precision.
double row_loss(const RowLossSpec& spec, const double* x, const double* t, int64_t n) {
  using Kind = RowLossSpec::Kind;
  if (spec.kind == Kind::dice || spec.kind == Kind::tversky) return overlap_loss(spec, x, t, n);
  double pp = 0, tt = 0, pt = 0, most = x[0], total = 0, loss = 0;
  for (int64_t c = 0; c < n; ++c) {
    pp += x[c] * x[c], tt += t[c] * t[c], pt += x[c] * t[c];
    most = std::max(most, x[c]);
  }
  if (spec.kind == RowLossSpec::Kind::cosine_similarity) return -pt / std::sqrt(pp * tt);
  const auto raised = [&](int64_t c) { return spec.from_logits ? std::exp(x[c] - most) : x[c]; };
  for (int64_t c = 0; c < n; ++c) total += raised(c);
  const double smoothing = static_cast<double>(spec.label_smoothing);
  for (int64_t c = 0; c < n; ++c) {
    const double q = clipped(raised(c) / total);
    const double smoothed = (1 - smoothing) * t[c] + smoothing / static_cast<double>(n);
    loss -= static_cast<double>(spec.alpha) * smoothed * std::pow(1 - q, static_cast<double>(spec.gamma)) *
            std::log(q);
  }
  return loss;
}

}  // namespace

DEVICE_TEST_CASE("row losses and their gradients match the reference") {
  using Kind = RowLossSpec::Kind;
  const RowLossSpec specs[] = {{.kind = Kind::cosine_similarity},
                               {.kind = Kind::categorical_focal_crossentropy},
                               {.kind = Kind::categorical_focal_crossentropy,
                                .from_logits = true,
                                .label_smoothing = 0.1f,
                                .gamma = 1.5f,
                                .alpha = 0.5f},
                               {.kind = Kind::dice},
                               {.kind = Kind::dice, .classes = 3, .factor = 4},
                               {.kind = Kind::tversky, .alpha = 0.7f, .beta = 0.2f, .classes = 2}};
  for (const Extent& extent : {Extent{1, 5}, Extent{64, 10}, Extent{300, 3}, Extent{3, 1030}}) {
    const size_t step_of_columns = extent.columns > 1000 ? 37 : 1;  // checks only some elements of long rows
    for (const RowLossSpec& spec : specs) {
      for (const bool weighted : {false, true}) {
        const Weights weights(device, extent.rows, 2, weighted);
        CAPTURE(static_cast<int>(spec.kind));
        CAPTURE(extent.columns);
        CAPTURE(weighted);
        const bool probabilities = spec.kind != Kind::cosine_similarity && !spec.from_logits;
        const Floats target = distributions(extent, 2);
        const Floats scores = device.kept(probabilities ? distributions(extent, 1)
                                                        : random_floats(extent.rows * extent.columns, 1, 3));
        Doubles x = doubles_of(scores), t = doubles_of(target), gradient;
        std::vector<size_t> places;  // indices of the checked gradient elements
        double expected = 0;
        for (int64_t r = 0; r < extent.rows; ++r) {
          const auto at = static_cast<size_t>(r * extent.columns);
          const auto loss = [&] { return row_loss(spec, x.data() + at, t.data() + at, extent.columns); };
          expected += weights.of(r) * spec.factor * loss();
          for (size_t i = at; i < at + static_cast<size_t>(extent.columns); i += step_of_columns) {
            const double before = x[i], step = 1e-6 * std::max(std::abs(before), 1e-3);
            x[i] = before + step;
            const double above = loss();
            x[i] = before - step;
            places.push_back(i);
            gradient.push_back(0.5 * weights.of(r) * (above - loss()) / (2 * step));
            x[i] = before;
          }
        }
        const TypedArray own_x = device.typed(scores);
        const auto own_target = device.array(target);
        const LossBatch batch{device, extent, own_x.data(), view_of(own_target, extent), weights.rows()};
        const auto run = [&](const LossArguments& args) { device.ops().row_loss(spec, args); };
        const Floats all = batch.check(run, expected, 0.5f, 5e-6);
        Floats found;
        for (const size_t i : places) found.push_back(all[i]);
        check_close(found, gradient, device.tolerance(2e-5));
      }
    }
  }
}

}  // namespace dtrain::test

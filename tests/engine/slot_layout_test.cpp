// Tests the layout of optimizer slots whose shapes differ from those of the weights.
#include "engine/state/slot_layout.h"

#include "support/graphs.h"

using namespace dtrain;
using namespace dtrain::test;

namespace {

const Graph& graph() {
  static const Graph kGraph = graph_from(R"(
inputs: {x: [20]}
layers:
  - dense: {name: a, units: 3}
  - dense: {name: frozen, units: 3, trainable: false}
  - dense: {name: b, units: 40}
)");
  return kGraph;
}

bool operator==(Range a, Range b) {
  return a.begin == b.begin && a.end == b.end;
}

}  // namespace

TEST_CASE("a slot with the shapes of the weights has the same offsets as the parameters") {
  const ParameterLayout layout(graph());
  const SlotLayout slot(layout, {"momentum"});
  CHECK(slot.is_like_weights());
  CHECK(slot.size() == layout.trained());
  for (const int64_t at : {int64_t{0}, int64_t{17}, layout.trained()}) CHECK(slot.at(at) == at);
  const ParameterSlice& kernel = layout.slice(1, 0);
  CHECK((slot.of(kernel) == Range{kernel.offset, kernel.offset + 60}));
}

TEST_CASE("slots for rows, columns and vectors have the same order as the trained parameters") {
  // The layout of the parameters in memory, in which each parameter is aligned to 16 floats: [b/bias 40 |
  // b/kernel 3 x 40 | a/bias 3 | a/kernel 20 x 3].
  const ParameterLayout layout(graph());
  const ParameterSlice &a_kernel = layout.slice(1, 0), &a_bias = layout.slice(1, 1);
  const ParameterSlice &b_kernel = layout.slice(3, 0), &b_bias = layout.slice(3, 1);
  const SlotLayout rows(layout, {"rows", 0, SlotShape::row_means});
  CHECK(rows.size() == 16 + 32);
  CHECK((rows.of(b_kernel) == Range{0, 3}));
  CHECK((rows.of(a_kernel) == Range{16, 36}));
  CHECK(rows.of(a_bias).size() == 0);
  const SlotLayout columns(layout, {"columns", 0, SlotShape::column_means});
  CHECK(columns.size() == 48 + 16);
  CHECK((columns.of(b_kernel) == Range{0, 40}));
  CHECK((columns.of(a_kernel) == Range{48, 51}));
  const SlotLayout vectors(layout, {"vectors", 0, SlotShape::vector});
  CHECK(vectors.size() == 48 + 16);
  CHECK((vectors.of(b_bias) == Range{0, 40}));
  CHECK((vectors.of(a_bias) == Range{48, 51}));
  // A replica's share of the parameters consists of whole parameters. For some shares, these checks compute
  // the elements of the slot that belong to the share.
  CHECK((rows.of(Range{0, a_bias.offset}) == Range{0, 16}));
  CHECK((rows.of(Range{a_bias.offset, layout.trained()}) == Range{16, 48}));
  CHECK((vectors.of(Range{b_kernel.offset, layout.trained()}) == Range{48, 64}));
  CHECK(vectors.of(Range{a_kernel.offset, layout.trained()}).size() == 0);
}

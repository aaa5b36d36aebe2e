#include <fmt/format.h>

#include "config/scalar.h"
#include "nn/layers/common.h"
#include "nn/layers/table.h"

namespace dtrain {

/// Written as one number for all sides, [rows, columns] for both sides each, or [[top, bottom], [left,
/// right]].
template <>
struct Codec<Padding2> {
  static bool parse(const ConfigNode& node, const std::string& where, Padding2& out,
                    Diagnostics& diagnostics) {
    if (!node.is_sequence()) {
      Pair both;
      if (!parse_pair(node, where, both, diagnostics)) return false;
      out = {both.first, both.second, both.first, both.second};
      return true;
    }
    if (node.items().size() != 2)
      return report_unexpected(node, where, "a number, [rows, columns], or [[top, bottom], [left, right]]",
                               diagnostics);
    Pair rows, columns;
    const bool good = parse_pair(node.items()[0], where, rows, diagnostics);
    if (!parse_pair(node.items()[1], where, columns, diagnostics) || !good) return false;
    out = {rows.first, rows.second, columns.first, columns.second};
    return true;
  }

  static ConfigNode write(const Padding2& value) {
    const auto pair = [](int64_t before, int64_t after) {
      return ConfigNode::sequence({Codec<int64_t>::write(before), Codec<int64_t>::write(after)});
    };
    return ConfigNode::sequence({pair(value.top, value.bottom), pair(value.left, value.right)});
  }

  static Json schema() {
    const Json number = Json(json_type("integer")).set("minimum", 0);
    const auto pair_of = [](const Json& item) {
      return json_type("array").set("items", item).set("minItems", 2).set("maxItems", 2);
    };
    Json side = Json::array();
    side.push(number).push(pair_of(number));
    Json choices = Json::array();
    choices.push(number).push(pair_of(Json::object().set("anyOf", std::move(side))));
    return Json::object().set("anyOf", std::move(choices));
  }

 private:
  using Pair = std::pair<int64_t, int64_t>;

  /// Before and after; one number is both.
  static bool parse_pair(const ConfigNode& node, const std::string& where, Pair& out,
                         Diagnostics& diagnostics) {
    if (!node.is_sequence()) {
      if (!parse_number_of_pixels(node, where, out.first, diagnostics)) return false;
      out.second = out.first;
      return true;
    }
    if (node.items().size() != 2)
      return report_unexpected(node, where, "two numbers, before and after", diagnostics);
    return parse_number_of_pixels(node.items()[0], where, out.first, diagnostics) &&
           parse_number_of_pixels(node.items()[1], where, out.second, diagnostics);
  }

  static bool parse_number_of_pixels(const ConfigNode& node, const std::string& where, int64_t& out,
                                     Diagnostics& diagnostics) {
    if (!Codec<int64_t>::parse(node, where, out, diagnostics)) return false;
    constexpr int64_t kMost = 1 << 20;
    if (out >= 0 && out <= kMost) return true;
    return report_unexpected(node, where, fmt::format("a number from 0 to {}", kMost), diagnostics);
  }
};

namespace {

struct PaddingOptions {
  Padding2 padding{1, 1, 1, 1};

  static const Schema<PaddingOptions>& schema() {
    static const auto schema =
        Schema<PaddingOptions>("Zeros around images.")
            .example("{padding: [1, 2]}")
            .optional("padding", &PaddingOptions::padding,
                      "pixels: one number, [rows, columns], or [[top, bottom], [left, right]]")
            .positional("padding");
    return schema;
  }
};

class PreparedPadding : public PreparedLayer {
 public:
  PreparedPadding(const LayerRequest& request, const Padding2& padding)
      : ops_(request.ops), padding_(padding), src_shape_(request.inputs[0].shape.prepended(request.batch)) {}

  void forward(const LayerArguments& args) override {
    ops_.pad_images(padding_, args.input(), args.output(), src_shape_);
  }

  void backward(const LayerArguments& args) override {
    if (args.diff_inputs[0]) ops_.crop_images(padding_, args.diff_output(), args.diff_inputs[0], src_shape_);
  }

 private:
  Ops& ops_;
  Padding2 padding_;
  Shape src_shape_;
};

class ZeroPadding2D : public ImageLayerWith<PaddingOptions> {
 public:
  using ImageLayerWith::ImageLayerWith;

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs,
                                const ReportError& report_error) const override {
    const TensorSpec* input = image_input(inputs, report_error);
    if (!input) return {};
    const auto& [top, bottom, left, right] = options_.padding;
    const Shape& shape = input->shape;
    return {TensorSpec{{}, {shape[0] + top + bottom, shape[1] + left + right, shape[2]}, DType::float32}};
  }

  std::unique_ptr<PreparedLayer> prepare(const LayerRequest& request) const override {
    return std::make_unique<PreparedPadding>(request, options_.padding);
  }

  std::string keras_class() const override { return "ZeroPadding2D"; }
};

}  // namespace

void add_zero_padding2d(Registry<Layer>& table) {
  table.add<ZeroPadding2D>("zero_padding2d", PaddingOptions::schema());
}

}  // namespace dtrain

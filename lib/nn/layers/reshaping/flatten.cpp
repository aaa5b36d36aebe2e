#include <fmt/format.h>

#include "nn/layers/common.h"
#include "nn/layers/reshaping/prepared_view.h"
#include "nn/layers/table.h"
#include "nn/no_options.h"

namespace dtrain {
namespace {

class Flatten : public Layer {
 public:
  explicit Flatten(const NoOptions&) {}

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs,
                                const ReportError& report_error) const override {
    if (!one_input(inputs, report_error)) return {};
    return {TensorSpec{{}, {inputs[0].shape.elements()}, inputs[0].dtype}};
  }

  std::unique_ptr<PreparedLayer> prepare(const LayerRequest&) const override {
    return std::make_unique<PreparedView>();
  }
};

}  // namespace

void add_flatten(Registry<Layer>& table) {
  table.add<Flatten>("flatten", Schema<NoOptions>("Flattens each sample to one axis.").details({}));
}

}  // namespace dtrain

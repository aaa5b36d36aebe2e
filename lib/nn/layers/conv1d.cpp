#include "nn/layers/activation.h"
#include "nn/layers/common.h"
#include "nn/layers/one_dimensional.h"
#include "nn/layers/table.h"
#include "nn/layers/window.h"

namespace dtrain {
namespace {

struct Conv1DOptions {
  int64_t filters = 0, kernel_size = 0, strides = 1;
  Border padding = Border::valid;
  int64_t dilation_rate = 1;
  OptionalActivation activation;
  bool use_bias = true;
  Configured<Initializer> kernel_initializer = registry<Initializer>().make("glorot_uniform");
  Configured<Initializer> bias_initializer = registry<Initializer>().make("zeros");

  static const Schema<Conv1DOptions>& schema() {
    using O = Conv1DOptions;
    static const auto schema =
        Schema<O>("A convolution of sequences: [length, channels] to [length, filters].")
            .example("{filters: 32, kernel_size: 3, padding: same, activation: relu}")
            .required("filters", &O::filters, "channels of the output", extent())
            .required("kernel_size", &O::kernel_size, "extent of the kernel", extent())
            .optional("strides", &O::strides, "steps of the kernel over the sequence", extent())
            .optional("padding", &O::padding, "'same' pads with zeros to ceil(extent / stride)")
            .optional("dilation_rate", &O::dilation_rate, "distance between the kernel's elements", extent())
            .optional("activation", &O::activation, "what follows")
            .optional("use_bias", &O::use_bias, "add a bias")
            .optional("kernel_initializer", &O::kernel_initializer,
                      "how the [length, channels, filters] kernel begins")
            .optional("bias_initializer", &O::bias_initializer, "how the bias begins")
            .details({"activation", "use_bias", "kernel_initializer", "bias_initializer"});
    return schema;
  }
};

}  // namespace

void add_conv1d(Registry<Layer>& table) {
  table.add_with("conv1d", Conv1DOptions::schema(), [](const Conv1DOptions& options, const ConfigNode&) {
    return layer_of_sequences({"conv2d", {"kernel_size", "strides", "dilation_rate"}, {}},
                              Conv1DOptions::schema().write(options));
  });
}

}  // namespace dtrain

#include <fmt/format.h>

#include "nn/layers/common.h"
#include "nn/layers/convolution/conv2d_transpose.h"
#include "nn/layers/one_dimensional.h"
#include "nn/layers/table.h"

namespace dtrain {
namespace {

struct Conv1DTransposeOptions : KernelAndBias {
  int64_t filters = 0, kernel_size = 0, strides = 1;
  Border padding = Border::valid;
  std::optional<int64_t> output_padding;
  int64_t dilation_rate = 1;

  static const Schema<Conv1DTransposeOptions>& schema() {
    using O = Conv1DTransposeOptions;
    static const auto schema =
        with_kernel_and_bias(
            Schema<O>("A 1D transposed convolution (also called deconvolution). It lengthens sequences by a "
                      "factor of about `strides`.")
                .example("{filters: 16, kernel_size: 4, strides: 2, padding: same}")
                .required("filters", &O::filters, "number of channels of the output", extent())
                .required("kernel_size", &O::kernel_size, "length of the kernel", extent())
                .optional("strides", &O::strides,
                          "stride: the distance in the output between neighboring positions of the input",
                          extent())
                .optional("padding", &O::padding,
                          "Determines the length of the output. With `same`, the length is strides times the "
                          "length of the input. With `valid`, the output has all positions that the kernel "
                          "reaches.")
                .optional("output_padding", &O::output_padding,
                          "Number of positions added at the end of the output, which must be less than the "
                          "strides. Default: the length of the output follows from `padding`.",
                          at_least(std::optional<int64_t>(0)))
                .optional("dilation_rate", &O::dilation_rate,
                          "dilation of the kernel: the distance between neighboring elements of the kernel "
                          "in the output",
                          extent()),
            "length, filters, channels")
            .rule([](const O& o, const ConfigNode& node, Diagnostics& diagnostics) {
              if (o.output_padding && *o.output_padding >= o.strides)
                diagnostics.error(*node.find("output_padding"),
                                  fmt::format("conv1d_transpose: output_padding must be less than the "
                                              "strides, which are {}, but output_padding is {}",
                                              o.strides, *o.output_padding));
            });
    return schema;
  }
};

}  // namespace

void add_conv1d_transpose(Registry<Layer>& table) {
  table.add_with("conv1d_transpose", Conv1DTransposeOptions::schema(),
                 [](const Conv1DTransposeOptions& options, const ConfigNode&) {
                   TransposeOptions image;
                   static_cast<KernelAndBias&>(image) = options;
                   image.filters = options.filters;
                   image.kernel_size = {1, options.kernel_size};
                   image.strides = {1, options.strides};
                   image.padding = options.padding;
                   image.output_padding = options.output_padding;
                   image.dilation_rate = {1, options.dilation_rate};
                   return layer_of_sequences(make_conv2d_transpose(image));
                 });
}

}  // namespace dtrain

#include "nn/layers/common.h"
#include "nn/layers/convolution/conv2d.h"
#include "nn/layers/convolution/groups.h"
#include "nn/layers/one_dimensional.h"
#include "nn/layers/table.h"

namespace dtrain {
namespace {

/// The values of the `padding:` option for sequences.
enum class SequenceBorder { valid, same, causal };

}  // namespace

template <>
inline const EnumNames<SequenceBorder> names_of<SequenceBorder> = {
    {SequenceBorder::valid, "valid"}, {SequenceBorder::same, "same"}, {SequenceBorder::causal, "causal"}};

namespace {

Border border_of(SequenceBorder border) {
  switch (border) {
    case SequenceBorder::valid:
      return Border::valid;
    case SequenceBorder::same:
      return Border::same;
    case SequenceBorder::causal:
      return Border::causal;
  }
  return Border::valid;
}

struct Conv1DOptions : KernelAndBias {
  int64_t filters = 0, kernel_size = 0, strides = 1;
  SequenceBorder padding = SequenceBorder::valid;
  int64_t dilation_rate = 1;
  int64_t groups = 1;

  /// Returns the schema of the options that describe the window.
  static Schema<Conv1DOptions> window_schema() {
    using O = Conv1DOptions;
    return Schema<O>(
               "A 1D convolution of sequences. The input has the shape [length, channels]. The output has "
               "`filters` channels.")
        .example("{filters: 32, kernel_size: 3, padding: same, activation: relu}")
        .required("filters", &O::filters, "number of channels of the output", extent())
        .required("kernel_size", &O::kernel_size, "length of the kernel", extent())
        .optional(
            "strides", &O::strides,
            "stride of the kernel: the distance between neighboring positions of the kernel in the sequence",
            extent())
        .optional(
            "padding", &O::padding,
            "Padding of the sequence. With `valid`, there is no padding. With `same`, zeros are added at "
            "both ends, so that the output's length is ceil(length / stride). With `causal`, zeros are "
            "added only at the start, so that an output does not depend on later positions of the input.")
        .optional("dilation_rate", &O::dilation_rate,
                  "dilation of the kernel: the distance between neighboring elements of the kernel in the "
                  "sequence",
                  extent());
  }

  static const Schema<Conv1DOptions>& schema() {
    static const Schema<Conv1DOptions> schema =
        with_kernel_and_bias(with_groups(window_schema(), "conv1d"), "length, channels / groups, filters")
            .details({"activation", "use_bias", "groups"});
    return schema;
  }
};

}  // namespace

void add_conv1d(Registry<Layer>& table) {
  table.add_with("conv1d", Conv1DOptions::schema(), [](const Conv1DOptions& options, const ConfigNode&) {
    ConvOptions<Size2> image;
    static_cast<KernelAndBias&>(image) = options;
    image.filters = options.filters;
    image.kernel_size = {1, options.kernel_size};
    image.strides = {1, options.strides};
    image.padding = border_of(options.padding);
    image.dilation_rate = {1, options.dilation_rate};
    image.groups = options.groups;
    return layer_of_sequences(make_conv2d(image));
  });
}

}  // namespace dtrain

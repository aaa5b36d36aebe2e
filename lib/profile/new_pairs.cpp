// Implements `dtrain new` for two parallel folders of images. The task is segmentation or image-to-image
// regression.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "profile/new_config.h"
#include "profile/new_recipe.h"
#include "profile/picture_pairs.h"

namespace dtrain {

namespace {

constexpr int64_t kLongestSide = 128;  // training on larger images would be slow on CPUs

/// Sizes of the proposed network.
struct UNet {
  int64_t height = 0, width = 0;
  int64_t poolings = 0;  // number of poolings; each of them halves the image
  int channels = 3;      // number of channels of the input
};

/// Returns a network for images of this size. Images with a side longer than kLongestSide are made smaller.
/// The height and width of the network's input can be halved `poolings` times.
UNet net_for(const PictureLook& look) {
  constexpr double kSmallest = 32;  // three poolings reduce this size to 4 pixels
  const double height = static_cast<double>(look.height), width = static_cast<double>(look.width);
  const double scale = std::min(1.0, kLongestSide / std::max(height, width));
  const double shorter = scale * std::min(height, width);
  UNet net;
  net.poolings = shorter >= kSmallest ? 3 : shorter >= kSmallest / 2 ? 2 : 1;
  const int64_t multiple = int64_t{1} << net.poolings;
  const auto side = [&](double pixels) {
    return std::max<int64_t>(std::llround(scale * pixels / static_cast<double>(multiple)), 1) * multiple;
  };
  net.height = side(height);
  net.width = side(width);
  net.channels = look.gray ? 1 : 3;
  return net;
}

/// Returns the ratio of the targets' size to the images' size if it is the same integer from 1 to 4 for the
/// height and the width. Otherwise returns 0.
int64_t enlargement(const InspectedPairs& pairs) {
  constexpr int64_t kMost = 4;
  for (int64_t factor = 1; factor <= kMost; ++factor)
    if (pairs.targets.height == factor * pairs.images.height &&
        pairs.targets.width == factor * pairs.images.width)
      return factor;
  return 0;
}

/// Returns the section `model` of the configuration. `last`: the lines of the last layers.
std::string model_text(const UNet& net, const std::string& last) {
  constexpr int64_t kFilters = 16;
  const auto filters = [&](int64_t level) { return kFilters << level; };
  std::string text = fmt::format(
      "model:                                # a U-Net\n"
      "  inputs: {{image: [{}, {}, {}]}}\n"
      "  blocks:\n"
      "    convolutions:\n"
      "      parameters: {{filters: 16}}\n"
      "      layers:\n",
      net.height, net.width, net.channels);
  for (int i = 0; i < 2; ++i)
    text +=
        "        - conv2d: {filters: $filters, kernel_size: 3, padding: same, use_bias: false}\n"
        "        - batch_normalization: {momentum: 0.9}  # the default, 0.99, suits epochs of many hundred "
        "steps\n"
        "        - activation: relu\n";
  text += "  layers:\n";
  for (int64_t level = 0; level < net.poolings; ++level)
    text += fmt::format(
        "    - convolutions: {{name: down_{}, filters: {}}}\n"
        "    - max_pooling2d: {{pool_size: 2}}\n",
        level + 1, filters(level));
  text += fmt::format("    - convolutions: {{filters: {}}}\n", filters(net.poolings));
  for (int64_t level = net.poolings - 1; level >= 0; --level)
    text += fmt::format(
        "    - conv2d_transpose: {{name: up_{0}, filters: {1}, kernel_size: 2, strides: 2}}\n"
        "    - concatenate: {{inputs: [up_{0}, down_{0}]}}\n"
        "    - convolutions: {{filters: {1}}}\n",
        level + 1, filters(level));
  return text + last + "\n";
}

/// Returns the lines of the last layers for target images that are `factor` times as large as the inputs. If
/// inputs and targets have the same number of channels, the network computes the difference between them.
/// This difference is 0 before training.
std::string image_layers(int64_t factor, int channels, bool has_same_channels) {
  std::string text;
  if (factor > 1)
    text = fmt::format(
        "    - conv2d_transpose: {{filters: 16, kernel_size: {0}, strides: {0}, activation: relu}}\n",
        factor);
  if (!has_same_channels)
    return text +
           fmt::format("    - conv2d: {{name: restored, filters: {}, kernel_size: 3, padding: same}}\n",
                       channels);
  text += fmt::format(
      "    - conv2d: {{name: difference, filters: {}, kernel_size: 3, padding: same, kernel_initializer: "
      "zeros}}\n",
      channels);
  if (factor > 1)
    text += fmt::format(
        "    - upsampling2d: {{name: enlarged, inputs: image, size: {}, interpolation: bilinear}}\n", factor);
  return text + fmt::format("    - add: {{name: restored, inputs: [difference, {}]}}\n",
                            factor > 1 ? "enlarged" : "image");
}

/// Returns the classes in the form of the reader's option `classes`: `numbers` or a list.
std::string classes_text(const MaskClasses& classes) {
  const ConfigNode node = Codec<MaskClasses>::write(classes);
  if (node.is_scalar()) return node.text();
  std::vector<std::string> items;
  for (const ConfigNode& item : node.items())
    items.push_back(item.quoted() ? fmt::format("\"{}\"", item.text()) : item.text());
  return fmt::format("[{}]", fmt::join(items, ", "));
}

std::string dataset_text(const NewOptions& options, const InspectedPairs& pairs, const UNet& net) {
  const std::string classes =
      pairs.has_masks() ? fmt::format(", classes: {}", classes_text(*pairs.classes)) : "";
  const bool skips = pairs.images.bad > 0 || pairs.targets.bad > 0;
  const auto split = [&](const char* name, const PairedFolders& folders) {
    if (folders.images.empty()) return drawn_split(name, false);
    return fmt::format(
        "  {}:\n"
        "    images:\n"
        "      directory: {}\n"
        "      target_images: {{directory: {}{}}}\n"
        "      size: [{}, {}]\n"
        "      channels: {}\n{}",
        name, yaml_string(path_from_config(options, folders.images)),
        yaml_string(path_from_config(options, folders.targets)), classes, net.height, net.width, net.channels,
        skips ? "      on_error: skip\n" : "");
  };
  std::string text = "dataset:\n" + split("train", pairs.train) + split("validation", pairs.validation) +
                     split("test", pairs.test) + "  transforms:\n";
  text += pairs.has_masks() ? "    - rescale: {scale: 1/255}\n"
                            : "    - rescale: {scale: 1/255, of: [image, target]}\n";
  text +=
      "  augment:                            # training only; changes an image and its target alike\n"
      "    - random_flip: {mode: horizontal}   # if left and right do not matter\n";
  if (pairs.has_masks())
    text +=
        "    - random_translation: {height_factor: 0.1, width_factor: 0.1, fill_mode: nearest}\n"
        "    - random_zoom: {height_factor: 0.15, fill_mode: nearest}\n";
  return text + "\n";
}

std::string training_text(const InspectedPairs& pairs) {
  TrainingLength length = length_for_pictures(pairs.pairs);
  length.batch_size = 8;  // small, because each image has many pixels
  std::string text = "train:\n" + epochs_text(length);
  if (!pairs.has_masks())
    text += "  loss: mean_squared_error\n  metrics: [mean_absolute_error]\n";
  else if (pairs.class_count == 2)
    text +=
        "  loss: {binary_crossentropy: {from_logits: true}}\n"
        "  metrics: [binary_accuracy, mean_iou]\n";
  else
    text +=
        "  loss: {sparse_categorical_crossentropy: {from_logits: true}}\n"
        "  metrics: [sparse_categorical_accuracy, mean_iou]\n";
  if (pairs.has_masks())
    text += "  # class_weight: balanced            # if the network misses rare classes\n";
  return text + schedule_text(length);
}

std::string describe_size(const PictureLook& look) {
  return fmt::format("{} x {}", look.height, look.width);
}

std::string describe_targets(const InspectedPairs& pairs) {
  if (!pairs.has_masks()) return fmt::format("images of {} pixels", describe_size(pairs.targets));
  std::string text = fmt::format("masks of {} classes: ", pairs.class_count);
  text += pairs.classes->are_numbers()
              ? fmt::format("the pixel values are numbers from 0 to {}", pairs.class_count - 1)
          : pairs.classes->are_gray() ? "gray levels " + classes_text(*pairs.classes)
                                      : "colors " + classes_text(*pairs.classes);
  if (pairs.examined < pairs.pairs)
    text += fmt::format(" ({} of {} masks were examined)", format_count(pairs.examined),
                        format_count(pairs.pairs));
  return text;
}

/// Adds notes about the data to the configuration, and sets its warnings.
void describe(const InspectedPairs& pairs, const UNet& net, int64_t factor, NewConfig& config) {
  config.notes = {fmt::format("{} of {} pixels (median) in {}; their targets in {} are {}",
                              format_plural(pairs.pairs, "image"), describe_size(pairs.images),
                              pairs.train.images, pairs.train.targets, describe_targets(pairs))};
  config.warnings = {describe_bad(pairs.images, "in " + pairs.train.images),
                     describe_bad(pairs.targets, "in " + pairs.train.targets)};
  if (net.height != pairs.images.height || net.width != pairs.images.width)
    config.warnings.push_back(fmt::format(
        "images are resized to {} x {}{}; to use another size, change the model's input and 'size' to "
        "multiples of {}",
        net.height, net.width, pairs.has_masks() ? "" : ", which loses details", int64_t{1} << net.poolings));
  if (!pairs.has_masks() && pairs.are_called_masks)
    config.warnings.push_back(fmt::format(
        "the files in {} cannot be masks, because {}; therefore, the files are used as images that the model "
        "should compute",
        pairs.train.targets,
        pairs.targets.has_16_bits
            ? "their values have 16 bits (convert masks to 8 bits)"
            : "a mask has at most 64 different pixel values, and all masks together have 2 to 256"));
  if (!pairs.has_masks() && factor == 0)
    config.warnings.push_back(
        fmt::format("the targets have {} pixels and the images have {} pixels; the ratio is not a whole "
                    "number from 1 to 4, so the targets are resized to the size of the images",
                    describe_size(pairs.targets), describe_size(pairs.images)));
  std::erase(config.warnings, "");
}

}  // namespace

NewConfig pairs_config(const NewOptions& options, const InspectedPairs& pairs) {
  if (pairs.validation.images.empty() || pairs.test.images.empty())
    check_can_be_split(pairs.train.images, pairs.pairs, format_plural(pairs.pairs, "image"));
  const UNet net = net_for(pairs.images);
  const int64_t factor = enlargement(pairs);
  const int channels = pairs.targets.gray ? 1 : 3;
  NewConfig config;
  describe(pairs, net, factor, config);
  const std::string last =
      pairs.has_masks() ? fmt::format("    - conv2d: {{name: mask, filters: {}, kernel_size: 1}}  # {}\n",
                                      pairs.class_count == 2 ? 1 : pairs.class_count,
                                      pairs.class_count == 2 ? "a score for class 1 at each pixel"
                                                             : "a score for each class at each pixel")
                        : image_layers(std::max<int64_t>(factor, 1), channels, channels == net.channels);
  config.text = config_head(options, config) + model_text(net, last) + dataset_text(options, pairs, net) +
                training_text(pairs);
  return config;
}

}  // namespace dtrain

// dtrain new, for a folder of pictures.
#include <algorithm>
#include <array>
#include <numeric>

#include <fmt/format.h>

#include "new_config.h"
#include "picture_look.h"
#include "text.h"

namespace dtrain {

namespace {

/// A side of pictures that a small network takes.
int64_t side_for(int64_t smaller) {
  constexpr std::array<int64_t, 6> kSides{28, 32, 64, 96, 128, 224};
  for (const int64_t side : kSides)
    if (smaller <= side) return side;
  return kSides[4];  // larger ones cost much and are seldom needed
}

/// Convolutions that halve the picture until little of it is left.
std::string picture_model(int64_t side, int channels, size_t classes) {
  std::string text = fmt::format(
      "model:\n"
      "  inputs: {{image: [{0}, {0}, {1}]}}\n"
      "  blocks:\n"
      "    stage:\n"
      "      parameters: {{filters: 32}}\n"
      "      layers:\n"
      "        - conv2d: {{filters: $filters, kernel_size: 3, padding: same, use_bias: false}}\n"
      "        - batch_normalization\n"
      "        - activation: relu\n"
      "        - max_pooling2d: {{pool_size: 2}}\n"
      "  layers:\n",
      side, channels);
  int64_t filters = 32;
  for (int64_t left = side; left > 7; left /= 2, filters = std::min<int64_t>(filters * 2, 256))
    text += fmt::format("    - stage: {{filters: {}}}\n", filters);
  return text + fmt::format(
                    "    - global_average_pooling2d\n"
                    "    - dropout: {{rate: 0.2}}\n"
                    "    - dense: {{units: {}}}  # a score for each class\n\n",
                    classes);
}

/// Splits that have no folder are drawn from the training split.
std::string picture_dataset(const NewOptions& options, const LookedAtPictures& looked, int64_t side,
                            int channels) {
  const auto split = [&](const char* name, const std::string& folder) {
    if (folder.empty())
      return fmt::format("  {}: {{split: {{of: train, fraction: 0.15, stratify: true}}}}\n", name);
    return fmt::format("  {}: {{images: {{directory: {}, size: [{}, {}], resize: crop, channels: {}}}}}\n",
                       name, yaml_string(path_from_config(options, folder)), side, side, channels);
  };
  return "dataset:\n" + split("train", looked.train) + split("validation", looked.validation) +
         split("test", looked.test) +
         "  transforms:\n    - rescale: {scale: 1/255}\n"
         "  augment:                            # training only\n"
         "    - random_flip: {mode: horizontal} # not for digits and letters\n\n";
}

std::string picture_training(int64_t pictures, bool has_rare_classes) {
  std::string text = fmt::format(
      "train:\n"
      "  epochs: 30\n"
      "  batch_size: {}\n"
      "  loss: {{sparse_categorical_crossentropy: {{from_logits: true}}}}\n"
      "  metrics: [sparse_categorical_accuracy, confusion_matrix]\n",
      pictures < 2'000 ? 16 : 32);
  if (has_rare_classes)
    text += "  class_weight: balanced              # some classes are rare: their pictures count more\n";
  return text +
         "  optimizer: {adam: {learning_rate: 0.001}}\n"
         "  callbacks: [{early_stopping: {monitor: val_loss, patience: 8}}]\n\n"
         "checkpoint: {best: {monitor: val_loss}}   # `dtrain predict --best` takes it\n";
}

}  // namespace

std::string picture_config(const NewOptions& options) {
  const LookedAtPictures looked = look_at_pictures(options.data);
  const int64_t pictures = std::accumulate(looked.counts.begin(), looked.counts.end(), int64_t{0});
  const auto [least, most] = std::minmax_element(looked.counts.begin(), looked.counts.end());
  const int64_t side = side_for(std::max<int64_t>(1, std::min(looked.height, looked.width)));
  const int channels = looked.grey ? 1 : 3;
  return config_head(options, {fmt::format("{}: {}", format_plural(pictures, "picture"),
                                           describe_classes(looked.classes, looked.counts))}) +
         picture_model(side, channels, looked.classes.size()) +
         picture_dataset(options, looked, side, channels) + picture_training(pictures, *most > 3 * *least);
}

}  // namespace dtrain

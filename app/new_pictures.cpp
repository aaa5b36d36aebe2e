// dtrain new, for a folder of pictures.
#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

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

}  // namespace

std::string picture_config(const NewOptions& options) {
  const LookedAtPictures looked = look_at_pictures(options.data);
  const auto relative = [&](const std::string& folder) {
    return yaml_string(path_from_config(options, folder));
  };
  int64_t pictures = 0;
  std::vector<std::string> classes;
  for (size_t i = 0; i < looked.classes.size(); ++i) {
    pictures += looked.counts[i];
    constexpr size_t kMostShown = 12;
    if (i < kMostShown)
      classes.push_back(fmt::format("{} ({})", looked.classes[i], format_count(looked.counts[i])));
    if (i == kMostShown) classes.push_back("...");
  }
  std::string described = fmt::format("{}: {}", format_plural(pictures, "picture"), fmt::join(classes, ", "));
  std::replace(described.begin(), described.end(), '\n', ' ');
  std::string text = config_head(options, "# " + described + ".\n");
  const int64_t side = side_for(std::max<int64_t>(1, std::min(looked.height, looked.width)));
  const int channels = looked.grey ? 1 : 3;
  text += fmt::format(
      "model:\n  inputs: {{image: [{0}, {0}, {1}]}}\n  blocks:\n    stage:\n      parameters: {{filters: "
      "32}}\n"
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
  text += fmt::format(
      "    - global_average_pooling2d\n    - dropout: {{rate: 0.2}}\n    - dense: {{units: {}}}  # a score "
      "for each class\n\n",
      looked.classes.size());
  text += fmt::format(
      "dataset:\n  train: {{images: {{directory: {}, size: [{}, {}], resize: crop, channels: {}}}}}\n",
      relative(looked.train), side, side, channels);
  const auto other = [&](const char* name, const std::string& folder) {
    if (folder.empty())
      return fmt::format("  {}: {{split: {{of: train, fraction: 0.15, stratify: true}}}}\n", name);
    return fmt::format("  {}: {{images: {{directory: {}, size: [{}, {}], resize: crop, channels: {}}}}}\n",
                       name, relative(folder), side, side, channels);
  };
  text += other("validation", looked.validation) + other("test", looked.test);
  text +=
      "  transforms:\n    - rescale: {scale: 1/255}\n"
      "  augment:                            # training only\n"
      "    - random_flip: {mode: horizontal} # not for digits and letters\n\n";
  text += fmt::format(
      "train:\n  epochs: 30\n  batch_size: {}\n  loss: {{sparse_categorical_crossentropy: {{from_logits: "
      "true}}}}\n"
      "  metrics: [sparse_categorical_accuracy, confusion_matrix]\n",
      pictures < 2'000 ? 16 : 32);
  if (const auto [least, most] = std::minmax_element(looked.counts.begin(), looked.counts.end());
      *most > 3 * *least)
    text += "  class_weight: balanced              # some classes are rare: their pictures count more\n";
  return text +
         "  optimizer: {adam: {learning_rate: 0.001}}\n"
         "  callbacks: [{early_stopping: {monitor: val_loss, patience: 8}}]\n\n"
         "checkpoint: {best: {monitor: val_loss}}   # `dtrain predict --best` takes it\n";
}

}  // namespace dtrain

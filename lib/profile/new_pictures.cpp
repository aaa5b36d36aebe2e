// Implements `dtrain new` for images, either in one folder per class or listed in a table.
#include <algorithm>
#include <array>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "profile/column_meaning.h"
#include "profile/new_config.h"
#include "profile/new_recipe.h"
#include "profile/picture_look.h"
#include "profile/picture_pairs.h"
#include "profile/table_target.h"

namespace dtrain {

namespace {

/// Returns the side length, in pixels, of square images that suit a small network.
int64_t side_for(const PictureLook& look) {
  constexpr std::array<int64_t, 6> kSides{28, 32, 64, 96, 128, 224};
  const int64_t smaller = std::min(look.height, look.width);
  for (const int64_t side : kSides)
    if (smaller <= side && look.has_pictures()) return side;
  return kSides[4];  // training on larger images is slow, and they are rarely necessary
}

/// Returns the section `model`: convolutions that halve the image until it is small, and then `last`, the
/// line of the last layer.
std::string picture_model(int64_t side, int channels, const std::string& last) {
  std::string text = fmt::format(
      "model:\n"
      "  inputs: {{image: [{0}, {0}, {1}]}}\n"
      "  blocks:\n"
      "    stage:\n"
      "      parameters: {{filters: 32}}\n"
      "      layers:\n"
      "        - conv2d: {{filters: $filters, kernel_size: 3, padding: same, use_bias: false}}\n"
      "        - batch_normalization: {{momentum: 0.9}}  # the default, 0.99, suits epochs of many hundred "
      "steps\n"
      "        - activation: relu\n"
      "        - max_pooling2d: {{pool_size: 2}}\n"
      "  layers:\n",
      side, channels);
  int64_t filters = 32;
  for (int64_t left = side; left > 4; left /= 2, filters = std::min<int64_t>(filters * 2, 256))
    text += fmt::format("    - stage: {{filters: {}}}\n", filters);
  return text + fmt::format(
                    "    - global_average_pooling2d\n"
                    "    - dropout: {{rate: 0.2}}\n"
                    "{}\n",
                    last);
}

constexpr const char* kScoresLayer = "    - dense: {units: auto}  # a score for each class\n";

/// Returns the options of the reader for images of `side` x `side` pixels.
std::string picture_options(int64_t side, int channels, const PictureLook& look) {
  return fmt::format("size: [{0}, {0}], resize: crop, channels: {1}{2}", side, channels,
                     look.bad > 0 && look.has_pictures() ? ", on_error: skip" : "");
}

/// Returns the sections with transforms and augmentations. Small gray images are not flipped, because they
/// often show digits or letters.
std::string picture_transforms(int64_t side, int channels) {
  constexpr int64_t kSmall = 32;
  std::string text =
      "  transforms:\n    - rescale: {scale: 1/255}\n"
      "  augment:                            # training only\n";
  text += channels == 1 && side <= kSmall
              ? "    # - random_flip: {mode: horizontal} # if left and right do not matter\n"
              : "    - random_flip: {mode: horizontal}   # not for digits and letters\n";
  text += "    - random_translation: {height_factor: 0.1, width_factor: 0.1, fill_mode: nearest}\n";
  if (side > kSmall) text += "    - random_zoom: {height_factor: 0.15, fill_mode: nearest}\n";
  return text + "\n";
}

/// Returns the section `dataset`. A split without a folder is drawn from the training split.
std::string picture_dataset(const NewOptions& options, const InspectedPictures& looked, int64_t side,
                            int channels) {
  const auto split = [&](const char* name, const InspectedPictures::Split& found) {
    if (found.path.empty()) return drawn_split(name, true);
    return fmt::format("  {}: {{images: {{directory: {}, {}}}}}\n", name,
                       yaml_string(path_from_config(options, found.path)),
                       picture_options(side, channels, found.look));
  };
  return "dataset:\n" + split("train", looked.train) + split("validation", looked.validation) +
         split("test", looked.test) + picture_transforms(side, channels);
}

std::string picture_training(int64_t pictures, bool regression, bool has_rare_classes) {
  const TrainingLength length = length_for_pictures(pictures);
  std::string text = "train:\n" + epochs_text(length) +
                     (regression ? "  loss: mean_squared_error\n  metrics: [mean_absolute_error]\n"
                                 : "  loss: {sparse_categorical_crossentropy: {from_logits: true}}\n"
                                   "  metrics: [sparse_categorical_accuracy, confusion_matrix]\n");
  if (has_rare_classes) text += kClassWeightText;
  return text + schedule_text(length);
}

/// Returns a description of problems with the image files that a table lists. Returns "" if there are no
/// problems.
std::string describe_named(const TableProfile& table, const NamedPictures& pictures) {
  const PictureLook& look = pictures.look;
  const std::string column = called(table, pictures.column);
  if (look.has_pictures()) return describe_bad(look, fmt::format("that {} names", column));
  return fmt::format(
      "none of the {} named in {} is an existing image (JPEG, PNG, BMP): the first one was expected at {}. "
      "If the images are in another folder, add 'directory: FOLDER' next to 'csv'. Also correct 'size', "
      "which is only a guess",
      format_plural(look.files, "file"), column, look.first.front());
}

}  // namespace

NewConfig picture_config(const NewOptions& options) {
  const InspectedPictures looked = inspect_pictures(options.data);
  const int64_t pictures = std::accumulate(looked.counts.begin(), looked.counts.end(), int64_t{0});
  const auto [least, most] = std::minmax_element(looked.counts.begin(), looked.counts.end());
  const PictureLook& look = looked.train.look;
  const int64_t side = side_for(look);
  const int channels = look.gray ? 1 : 3;
  const std::string count = look.looked == look.files
                                ? format_plural(pictures, "image")
                                : fmt::format("{}, of which {} were examined",
                                              format_plural(pictures, "file"), format_count(look.looked));
  NewConfig config;
  config.notes = {fmt::format("{}: {}", count, describe_classes(looked.classes, looked.counts))};
  config.warnings = {looked.warning, describe_suspected_pairs(options.data)};
  for (const auto* split : {&looked.train, &looked.validation, &looked.test})
    config.warnings.push_back(describe_bad(split->look, "in " + split->path));
  std::erase(config.warnings, "");
  config.text = config_head(options, config) + picture_model(side, channels, kScoresLayer) +
                picture_dataset(options, looked, side, channels) +
                picture_training(pictures, false, *most >= kRareClass * *least);
  return config;
}

NewConfig picture_table_config(const NewOptions& options, const TableProfile& table,
                               const NamedPictures& pictures) {
  if (table.columns.size() < 2)
    throw UserError(fmt::format(
        "{}: expected a column that describes the images, but found only the column with their file names",
        options.data));
  const TargetPlan plan = choose_target(table, options.target, pictures.column);
  const ColumnProfile& target = table.columns[plan.column];
  const int64_t side = side_for(pictures.look);
  const int channels = pictures.look.gray ? 1 : 3;
  std::string csv =
      fmt::format("file: {}, path: {}, target: {}", yaml_string(path_from_config(options, options.data)),
                  yaml_column(table, pictures.column), yaml_column(table, plan.column));
  if (!pictures.extension.empty()) csv += ", extension: " + pictures.extension;
  if (table.format.delimiter != ',') csv += ", delimiter: " + yaml_delimiter(table.format.delimiter);
  std::string reader = "csv: {" + csv + "}, ";
  if (!pictures.folder.empty())
    reader += fmt::format("directory: {}, ", yaml_string(path_from_config(options, pictures.folder)));
  reader += picture_options(side, channels, pictures.look);
  if (plan.names_are_numbers) {
    std::vector<std::string> names;
    for (const std::string& value : target.values) names.push_back(yaml_string(value));
    reader += fmt::format(", class_names: [{}]", fmt::join(names, ", "));
  }
  const std::string shows = plan.regression
                                ? fmt::format("{} is a number from {:g} to {:g}", called(table, plan.column),
                                              target.least, target.most)
                                : describe_classes(target.values, target.counts);
  NewConfig config;
  config.notes = {fmt::format("{}: {}", format_plural(table.rows, "image"), shows)};
  config.warnings = table.warnings;
  config.warnings.insert(config.warnings.end(), plan.warnings.begin(), plan.warnings.end());
  if (target.missing > 0)
    config.warnings.push_back(
        fmt::format("{} has no value in {}; `dtrain fit` rejects such rows, so remove them",
                    called(table, plan.column), format_plural(target.missing, "row")));
  config.warnings.push_back(plan.rare_warning);
  config.warnings.push_back(describe_named(table, pictures));
  std::erase(config.warnings, "");
  const std::string last =
      plan.regression
          ? fmt::format("    - dense: {{units: 1, bias_initializer: {{constant: {{value: {:.6g}}}}}}}\n",
                        target.mean)
          : kScoresLayer;
  config.text = config_head(options, config) + picture_model(side, channels, last) +
                fmt::format("dataset:\n  train: {{images: {{{}}}}}\n", reader) +
                drawn_split("validation", plan.stratify) + drawn_split("test", plan.stratify) +
                picture_transforms(side, channels) + picture_training(table.rows, plan.regression, plan.rare);
  return config;
}

}  // namespace dtrain

// Implements `dtrain new` for text: a folder of text files for each class, or a single text file.
#include "profile/new_text.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/text.h"
#include "base/utf8.h"
#include "data/pictures/picture_list.h"
#include "data/text/text_file.h"
#include "data/text/words.h"
#include "profile/new_config.h"
#include "profile/new_recipe.h"
#include "profile/picture_look.h"
#include "profile/prose.h"
#include "profile/table_target.h"

namespace dtrain {

namespace {

constexpr int64_t kContext = 128;  // length of the windows of a language model, in tokens

/// Returns the mean number of words per file. Only some of the files are read.
double mean_words(const FileListing& files) {
  constexpr size_t kMostRead = 500;
  const size_t step = files.files.size() / kMostRead + 1;
  int64_t words = 0, texts = 0;
  for (size_t i = 0; i < files.files.size(); i += step, ++texts) {
    const ListedFile& listed = files.files[i];
    const std::string path = path_in(files.folder, listed.path);
    check_readable(path, listed);
    const TextFile file(path);
    check_utf8(file.text(), path);  // the configuration has `tokens: words`, which requires UTF-8
    for_each_word(file.text(), TextStandardization::none, [&](std::string_view) { ++words; });
  }
  if (words == 0)
    throw UserError(fmt::format("{}: expected texts with words, found only empty texts", files.folder));
  return static_cast<double>(words) / static_cast<double>(std::max<int64_t>(texts, 1));
}

/// Returns the folder that contains the folders of the classes. This is the folder of the training split if
/// `folder` contains splits.
std::string class_folder(const std::string& folder) {
  const std::string train = split_called(folder, kTrainFolders);
  return train.empty() ? folder : train;
}

std::string folder_split(const NewOptions& options, const char* name, const std::string& path,
                         bool stratify) {
  if (path.empty()) return drawn_split(name, stratify);
  return fmt::format("  {}: {{text: {{directory: {}, tokens: words, vocabulary: {}}}}}\n", name,
                     yaml_string(path_from_config(options, path)), kNewVocabulary);
}

std::string language_model() {
  return fmt::format(
      "model:\n"
      "  inputs: {{tokens: {{shape: [{0}], dtype: int32}}}}  # the bytes of a window\n"
      "  blocks:\n"
      "    transformer:\n"
      "      parameters: {{width: 128, heads: 4}}\n"
      "      layers:\n"
      "        - layer_normalization: {{}}\n"
      "        - multi_head_attention: {{num_heads: $heads, causal: true, name: attention}}\n"
      "        - add: {{name: middle, inputs: [attention, input]}}\n"
      "        - layer_normalization: {{}}\n"
      "        - dense: {{units: 512, activation: gelu}}\n"
      "        - dense: {{units: $width, name: mlp}}\n"
      "        - add: {{inputs: [mlp, middle]}}\n"
      "  layers:\n"
      "    - embedding: {{input_dim: 256, output_dim: 128, name: token}}\n"
      "    - position_embedding: {{sequence_length: {0}}}\n"
      "    - transformer: {{repeat: 4}}\n"
      "    - layer_normalization: {{}}\n"
      "    - dense: {{units: 256}}             # a score for each next byte\n\n",
      kContext);
}

}  // namespace

int64_t length_for_words(double words) {
  // The length is the smallest power of two that is at least 16 and at least twice the mean number of words.
  // It is at most 512.
  int64_t length = 16;
  while (length < 512 && static_cast<double>(length) < 2 * words) length *= 2;
  return length;
}

std::string text_model(int64_t length, const std::string& last) {
  return fmt::format(
      "model:\n"
      "  inputs: {{tokens: {{shape: [{}], dtype: int32}}}}  # words of a text: longer texts are cut\n"
      "  layers:\n"
      "    - embedding: {{input_dim: {}, output_dim: 64}}\n"
      "    - global_average_pooling1d\n"
      "    - dropout: {{rate: 0.3}}\n"
      "{}\n",
      length, kNewVocabulary, last);
}

bool is_folder_of_texts(const std::string& folder) {
  const std::string classes = class_folder(folder);
  bool has_texts = false;
  for (const ListedFile& file : list_folder(classes)) {
    if (file.path.find('/') == std::string::npos) continue;
    if (has_ending_of_picture(file.path)) return false;
    has_texts = has_texts || has_ending_of_text(file.path);
  }
  return has_texts;
}

NewConfig prose_config(const NewOptions& options) {
  const TextFile file(options.data);
  const auto bytes = static_cast<int64_t>(file.text().size());
  constexpr int64_t kFewestWindows = 20;
  if (bytes < kFewestWindows * kContext + 1)
    throw UserError(fmt::format("{}: expected at least {} of text for a language model, found {} bytes",
                                options.data, format_plural(kFewestWindows * kContext + 1, "byte"),
                                format_count(bytes)));
  NewConfig config;
  config.notes = {fmt::format("{} of text: a language model, which predicts the next byte",
                              format_bytes(static_cast<uint64_t>(bytes)))};
  const TrainingLength length{10, 32, 3};
  config.text = config_head(options, config) + language_model() +
                fmt::format(
                    "dataset:\n"
                    "  train: {{text: {{file: {}, sequence_length: {}}}}}\n"
                    "  validation: {{split: {{of: train, fraction: 0.1}}}}  # the end of the text\n\n",
                    yaml_string(path_from_config(options, options.data)), kContext) +
                "train:\n" + epochs_text(length) +
                "  loss: {sparse_categorical_crossentropy: {from_logits: true}}\n"
                "  metrics: [sparse_categorical_accuracy]\n"
                "  clip_norm: 1.0\n" +
                schedule_text(length);
  return config;
}

NewConfig text_folder_config(const NewOptions& options) {
  const std::string train = class_folder(options.data);
  const bool has_splits = train != options.data;
  const PictureClasses list = list_classes(train, {}, "texts");
  if (list.class_names.size() < 2)
    throw UserError(
        fmt::format("{}: expected a folder of texts for each class, found a single class", train));
  std::vector<int64_t> counts(list.class_names.size(), 0);
  for (const int32_t number : list.classes) ++counts[static_cast<size_t>(number)];
  const auto [least, most] = std::minmax_element(counts.begin(), counts.end());
  constexpr int64_t kFewestToStratify = 8;
  const bool stratify = *least >= kFewestToStratify;
  const auto other = [&](const auto& names) {
    return has_splits ? split_called(options.data, names) : std::string();
  };
  const auto texts = static_cast<int64_t>(list.classes.size());
  if (!has_splits) check_can_be_split(train, texts, format_plural(texts, "text"));
  NewConfig config;
  config.notes = {
      fmt::format("{}: {}", format_plural(texts, "text"), describe_classes(list.class_names, counts))};
  config.warnings = {warning_of_splits(train, list.class_names)};
  std::erase(config.warnings, "");
  const TrainingLength length = length_for_rows(texts);
  config.text = config_head(options, config) +
                text_model(length_for_words(mean_words(list.files)),
                           "    - dense: {units: auto}              # a score for each class\n") +
                "dataset:\n" + folder_split(options, "train", train, stratify) +
                folder_split(options, "validation", other(kValidationFolders), stratify) +
                folder_split(options, "test", other(kTestFolders), stratify) + "  cache: memory\n\ntrain:\n" +
                epochs_text(length) +
                "  loss: {sparse_categorical_crossentropy: {from_logits: true}}\n"
                "  metrics: [sparse_categorical_accuracy, confusion_matrix]\n" +
                (*most >= kRareClass * *least ? kClassWeightText : "") + schedule_text(length);
  return config;
}

}  // namespace dtrain

// The text reader: windows over texts for language models, and texts in one folder per class.
#include "base/text.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/ascii.h"
#include "base/error.h"
#include "base/files/paths.h"
#include "data/dataset_spec.h"
#include "data/located_error.h"
#include "data/pictures/picture_list.h"
#include "data/readers/file_pattern.h"
#include "data/readers/reader.h"
#include "data/readers/text/options.h"
#include "data/readers/text/samples.h"
#include "data/readers/text/windows.h"
#include "data/text/make_tokenizer.h"
#include "data/text/token_counts.h"

namespace dtrain {

namespace {

/// Returns the beginning of `text`, at most `bytes` bytes. `text` must have more than `bytes` bytes. The
/// result ends after whitespace, so that no word is cut. If there is no whitespace, it ends after a whole
/// character (UTF-8).
std::string_view whole_words(std::string_view text, size_t bytes) {
  const std::string_view start = text.substr(0, bytes);
  const auto end = std::find_if(start.rbegin(), start.rend(), is_ascii_space).base();
  if (end != start.begin()) return start.substr(0, static_cast<size_t>(end - start.begin()));
  const auto continues_character = [&](size_t at) {
    return (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80;
  };
  while (bytes > 0 && continues_character(bytes)) --bytes;
  return text.substr(0, bytes);
}

/// Learns tokens from the files, but not from the fraction `held_out` at the end of their text.
LearnedTokens learn_from_files(const std::vector<std::shared_ptr<const TextFile>>& files,
                               const TokenOptions& options, double held_out) {
  size_t bytes = 0;
  for (const auto& file : files) bytes += file->text().size();
  auto left = static_cast<size_t>(static_cast<double>(bytes) * (1 - held_out));
  TokenCounts counts(options);
  for (const auto& file : files) {
    const std::string_view text = file->text();
    counts.add(left < text.size() ? whole_words(text, left) : text);
    file->check();
    left -= std::min(left, text.size());
  }
  return counts.learn(files.front()->path());
}

std::shared_ptr<const Column> column_of_paths(const FileListing& files) {
  std::vector<std::string> paths;
  for (const ListedFile& file : files.files) paths.push_back(file.path);
  return text_column("path", paths);
}

class TextReader final : public Reader {
 public:
  explicit TextReader(const TextReaderOptions& options) : options_(options) {}

  SourceColumns open(const ReadRequest& request) const override {
    check_ends(request);
    return options_.has_windows() ? open_texts(files_of(paths(request)), request)
                                  : open_folder(request.find(*options_.directory), request);
  }

  std::vector<std::string> files() const override {
    std::vector<std::string> all = options_.files;
    for (const auto* one : {&options_.file, &options_.directory})
      if (*one) all.push_back(**one);
    return all;
  }
  std::vector<std::string> paths(const ReadRequest& request) const override {
    if (options_.files.empty()) return Reader::paths(request);
    std::vector<std::string> all;
    ErrorCollector errors;
    for (const std::string& name : options_.files)
      errors.attempt({}, [&] {
        for (std::string& path : find_files(name, request)) all.push_back(std::move(path));
      });
    errors.throw_if_errors();
    return all;
  }
  std::optional<int64_t> overlap() const override {
    if (!options_.has_windows()) return std::nullopt;
    return (*options_.sequence_length - 1) / stride();
  }

  std::vector<std::optional<int64_t>> token_ids(const std::vector<TensorSpec>& inputs) const override {
    return std::vector<std::optional<int64_t>>(inputs.size(), options_.ids());
  }

  /// The targets of windows are tokens, so the number of classes is the number of ids. The training file does
  /// not determine this number, because other files may have tokens that do not occur in it.
  std::optional<int64_t> target_classes() const override {
    return options_.has_windows() ? std::optional(options_.ids()) : std::nullopt;
  }

  std::optional<SourceColumns> open_other(const std::string& path, FileFormat format, const TextOptions& text,
                                          const ReadRequest& request) const override {
    const bool is_folder = file_type(path) == FileType::directory;
    if (!is_folder && format != FileFormat::text && format != FileFormat::other) return std::nullopt;
    check_ends(request);
    if (text.header || text.delimiter)
      request.fail(
          fmt::format("{}: the run reads plain text, not tables or JSON lines; give a file or a folder of "
                      "plain text, without --header and --delimiter",
                      path));
    if (options_.has_windows()) return open_texts(files_of({path}), request);
    if (is_folder) return open_folder(path, request);
    if (!request.targets.empty()) return std::nullopt;
    return open_samples(samples_of_lines(path), request);
  }

 private:
  int64_t stride() const { return options_.stride.value_or(*options_.sequence_length); }

  static void check_ends(const ReadRequest& request) {
    if (request.inputs.size() != 1 || request.targets.size() > 1)
      request.fail(fmt::format(
          "the reader text needs a model with one input and at most one target, but this model has {} and {}",
          format_plural(static_cast<int64_t>(request.inputs.size()), "input"),
          format_plural(static_cast<int64_t>(request.targets.size()), "target")));
  }

  /// Returns the files at these paths. A folder stands for all files in it and in its subfolders.
  static std::vector<std::string> files_of(const std::vector<std::string>& paths) {
    std::vector<std::string> files;
    for (const std::string& path : paths) {
      if (file_type(path) != FileType::directory) {
        files.push_back(path);
        continue;
      }
      for (const ListedFile& file : list_folder(path)) files.push_back(path_in(path, file.path));
    }
    if (files.empty())
      throw UserError(fmt::format("{}: expected text files, found an empty folder", paths.front()));
    return files;
  }

  /// Returns the tokenizer of the run. If the run has none yet, calls `learn` to learn the tokens from a
  /// split of the configuration.
  template <class Learn>
  std::shared_ptr<const Tokenizer> tokenizer(const ReadRequest& request, Learn learn) const {
    if (auto known = known_tokenizer(request.facts, request.inputs[0].name, options_)) return known;
    check_has_vocabulary(request.facts, {request.inputs[0].name});
    if (request.use != FileUse::split && options_.tokens != TokenKind::bytes)
      request.fail("the run has no vocabulary, because it was not trained on text");
    return make_tokenizer(learn());
  }

  SourceColumns open_texts(const std::vector<std::string>& paths, const ReadRequest& request) const {
    std::vector<std::shared_ptr<const TextFile>> files;
    for (const std::string& path : paths) {
      files.push_back(std::make_shared<const TextFile>(path));
      if (options_.tokens == TokenKind::words) check_utf8(files.back()->text(), path);
    }
    const auto used = tokenizer(request, [&] { return learn_from_files(files, options_, request.held_out); });
    SourceColumns source =
        open_windows(files, used, {*options_.sequence_length, stride(), !request.targets.empty()});
    return with_facts(std::move(source), request, *used);
  }

  SourceColumns open_folder(const std::string& folder, const ReadRequest& request) const {
    if (request.targets.empty()) {
      FileListing files{folder, list_folder(folder)};
      if (files.files.empty())
        request.fail(fmt::format("{}: expected text files, found an empty folder", folder));
      const auto names = column_of_paths(files);
      SourceColumns source = open_samples(samples_of_files(std::move(files)), request);
      source.names = names;
      return source;
    }
    const auto known = request.facts.class_names.find("target");
    const bool is_known = known != request.facts.class_names.end();
    PictureClasses list = list_classes(folder, is_known ? known->second : options_.class_names, "texts");
    const auto labels = class_column(list), names = column_of_paths(list.files);
    SourceColumns source = open_samples(samples_of_files(std::move(list.files)), request);
    source.columns.push_back(labels);
    source.names = names;
    source.facts.class_names["target"] = list.class_names;
    const std::string warning = is_known ? "" : warning_of_splits(folder, list.class_names);
    if (!warning.empty()) source.warnings.push_back(warning);
    return source;
  }

  SourceColumns open_samples(const TextSamples& samples, const ReadRequest& request) const {
    const auto used = tokenizer(request, [&] { return learn_from_samples(samples, options_); });
    return with_facts(SourceColumns({column_of_tokens(samples, *used, length_for(request))}), request, *used);
  }

  int64_t length_for(const ReadRequest& request) const {
    const Shape& shape = request.inputs[0].shape;
    if (options_.length) return *options_.length;
    if (shape.rank() != 1)
      request.fail(
          fmt::format("text: give 'length', the number of tokens of a sample; it cannot be taken from "
                      "the input '{}' of shape {}",
                      request.inputs[0].name, shape.str()));
    return shape[0];
  }

  static SourceColumns with_facts(SourceColumns source, const ReadRequest& request, const Tokenizer& used) {
    source.facts = request.facts;
    source.facts.tokens = {{request.inputs[0].name, used.learned()}};
    return source;
  }

  TextReaderOptions options_;
};

void check_text_options(const TextReaderOptions& options, const ConfigNode& node, Diagnostics& diagnostics) {
  const int places = options.file.has_value() + options.directory.has_value() + !options.files.empty();
  if (places != 1) diagnostics.error(node, "give exactly one of 'file', 'files' and 'directory'");
  if (options.has_windows()) {
    if (options.length || !options.class_names.empty())
      diagnostics.error(node,
                        "'length' and 'class_names' are for classification, but 'sequence_length' is for "
                        "language models; remove the options of one kind");
    return;
  }
  if (options.stride) diagnostics.error(node, "'stride' is for language models; give 'sequence_length', too");
  if (places == 1 && !options.directory)
    diagnostics.error(node,
                      "give 'sequence_length', the number of tokens that a language model reads at once; "
                      "for classification, give 'directory' with one folder of texts for each class");
}

}  // namespace

void add_text(Registry<Reader>& table) {
  Schema<TextReaderOptions> schema(
      "Text files, plain or compressed with gzip. With `sequence_length`, the samples are for language "
      "models: a sample is a window of tokens, and the target of each token is the next token. Windows do "
      "not cross files, and tokens after the last whole window of a file are left out. Without "
      "`sequence_length`, the samples are for classification: the folder `directory` has one subfolder of "
      "text files per class, and each file is a sample. If no targets are needed, all files in the folder "
      "and its subfolders are read.");
  schema.example("{file: corpus.txt, sequence_length: 128}");
  schema.optional("file", &TextReaderOptions::file, "path of the file")
      .optional("files", &TextReaderOptions::files,
                "in place of `file`: paths of several files, in this order. The paths may have patterns such "
                "as part-{000..009}.txt and *.txt")
      .optional("directory", &TextReaderOptions::directory,
                "for classification: the folder with one subfolder of text files per class. For language "
                "models: a folder; all its files are read, sorted by name")
      .optional("sequence_length", &TextReaderOptions::sequence_length,
                "for language models: number of tokens in a window",
                between<std::optional<int64_t>>(1, INT32_MAX))
      .optional("stride", &TextReaderOptions::stride,
                "for language models: number of tokens from the start of one window to the start of the "
                "next. Default: `sequence_length`, so that each token is the target of one window",
                between<std::optional<int64_t>>(1, INT32_MAX))
      .optional("length", &TextReaderOptions::length,
                "for classification: number of tokens of a sample. Longer texts are truncated, and shorter "
                "texts are padded with id 0. Default: the length of the model's input",
                between<std::optional<int64_t>>(1, INT32_MAX))
      .optional("class_names", &TextReaderOptions::class_names,
                "for classification: names of the classes, in the order of their indices. Default: the names "
                "of the folders, sorted",
                distinct_names());
  add_token_fields(schema);
  schema.rule(check_text_options);
  table.add<TextReader>("text", schema);
}

}  // namespace dtrain

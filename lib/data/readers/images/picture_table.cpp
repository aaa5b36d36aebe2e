#include "data/readers/images/picture_table.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files/paths.h"
#include "data/located_error.h"
#include "data/pictures/class_numbers.h"
#include "data/pictures/picture_column.h"
#include "data/pictures/picture_files.h"
#include "data/readers/csv/column_check.h"
#include "data/readers/csv/planner.h"
#include "data/readers/csv/text.h"

namespace dtrain {

namespace {

/// Content of a table of images.
struct ReadTable {
  CsvStart start;
  size_t field = 0;  // index of the field that holds the paths
  CsvColumns columns;
  SourceFacts facts;
  std::vector<ListedFile> files;
};

std::vector<ListedFile> files_in(const PictureTable& table, const Column& paths) {
  const std::string own = std::filesystem::path(table.path).parent_path().string();
  const bool own_first = table.folder.empty() || table.is_given;
  const std::string& folder = own_first ? own : table.folder;
  const std::string& other_folder = own_first && !table.folder.empty() ? table.folder : own;
  std::vector<std::string> below, written;
  for (int64_t row = 0; row < paths.size(); ++row) {
    written.push_back(text_of(paths, row));
    below.push_back(path_in(folder, written.back() + table.options.extension));
  }
  std::vector<ListedFile> files = list_files(below);
  for (size_t i = 0; i < files.size(); ++i) {
    if (written[i].empty()) files[i].problem = "expected the path of an image, found nothing";
    if (files[i].problem.empty() || written[i].empty() || folder == other_folder) continue;
    ListedFile other = list_file(path_in(other_folder, written[i] + table.options.extension));
    if (other.problem.empty()) files[i] = std::move(other);
  }
  return files;
}

/// If the class names are known, allows the table to contain class indices instead of class names.
void take_numbers(CsvPlan& plan, const CsvStart& start) {
  for (auto& [field, category] : plan.categories)
    if (category.values && !category.separator)
      category.values = label_texts(*category.values, start.first[field]);
}

/// Throws LocatedError about all columns that the options select by name and the table does not have. Columns
/// that are selected by index are not checked, because the table of a different split may have different
/// columns. A table that is given on the command line is not checked either.
void check_named_columns(const PictureTable& table, const CsvStart& start) {
  if (table.is_given) return;
  const PictureCsv& options = table.options;
  std::vector<CsvColumnRef> columns{options.path};
  for (const auto* one : {&options.target, &options.target_image, &options.weight})
    if (*one) columns.push_back(**one);
  for (const auto& [name, column] : options.targets) columns.push_back(column);
  if (options.labels) {
    const CsvTarget labels = options.labels->used();
    columns.insert(columns.end(), labels.begin(), labels.end());
  }
  std::erase_if(columns, [](const CsvColumnRef& column) { return column.index.has_value(); });
  ErrorCollector errors;
  find_columns(start, columns, errors);
  errors.throw_if_errors();
}

ReadTable read_table(const PictureTable& table, const ReadRequest& request) {
  ReadTable read;
  read.facts = request.facts;
  CsvOptions known;  // options of a csv reader
  if (table.options.target) known.target = CsvTarget{{*table.options.target}};
  for (const auto& [name, column] : table.options.targets)
    known.targets.emplace_back(name, CsvTarget{{column}});
  known.labels = table.options.labels;
  known.weight = table.options.weight;
  std::optional<CsvPlanner> planner;
  read.columns = read_csv(table.path, table.format, [&](const CsvStart& found) {
    read.start = found;
    check_named_columns(table, found);
    CsvPlan plan;
    if (request.use != FileUse::prediction) plan = planner.emplace(known, request, read.start).plan();
    plan.advice.clear();  // the advice is about options of the csv reader
    for (CsvPart& part : plan.parts) part.advice_for_gap = kTargetGap;
    take_numbers(plan, found);
    plan.id = read.field = with_location(table.is_given ? Mark() : table.options.path.mark,
                                         [&] { return place_of_field(read.start, table.options.path); });
    return plan;
  });
  if (planner) read.facts = planner->facts(read.columns);
  read.files = files_in(table, *read.columns.names);
  return read;
}

/// Finds the position of each row's path in the text of the table, for error messages. Reads the text again.
class Places {
 public:
  Places(const PictureTable& table, const ReadTable& read)
      : text_(table.path, table.format.delimiter), field_(read.field), header_(!read.start.names.empty()) {
    if (read.start.width() == 1) text_.keep_blank_lines(header_ > 0);
  }

  int64_t line_of(size_t row) const { return text_.line_of(at(row)); }
  [[noreturn]] void fail(size_t row, const std::string& message) const { text_.fail(at(row), message); }

 private:
  const char* at(size_t row) const { return text_.find(static_cast<int64_t>(row) + header_, field_); }

  CsvText text_;
  size_t field_;
  int64_t header_;  // number of header rows
};

/// Returns advice for a path that does not exist: an option that may help, or "" if no option helps.
std::string advice_for(const PictureTable& table, const std::string& path) {
  if (file_type(path) != FileType::nothing) return "";
  constexpr std::array<const char*, 5> kEndings{".jpg", ".jpeg", ".png", ".bmp", ".JPG"};
  if (table.options.extension.empty())
    for (const char* ending : kEndings)
      if (list_file(path + ending).problem.empty())
        return fmt::format("; {0}{1} exists, so give 'extension: {1}'", path, ending);
  return table.folder.empty() ? "; set 'directory' to the folder of the images" : "";
}

void reject_duplicates(const PictureTable& table, const ReadTable& read) {
  std::unordered_map<std::string, size_t> met;
  for (size_t i = 0; i < read.files.size(); ++i) {
    const std::string& path = read.files[i].path;
    const auto [first, is_new] = met.emplace(std::filesystem::path(path).lexically_normal().string(), i);
    if (is_new || text_of(*read.columns.names, static_cast<int64_t>(i)).empty()) continue;
    const Places places(table, read);
    places.fail(i, fmt::format("each image must be listed only once, but {} is also listed in line {}", path,
                               places.line_of(first->second)));
  }
}

void reject_missing(const PictureTable& table, const ReadTable& read, bool can_skip) {
  const auto is_missing = [](const ListedFile& file) { return !file.problem.empty(); };
  const auto first = std::find_if(read.files.begin(), read.files.end(), is_missing);
  if (first == read.files.end()) return;
  const auto count = std::count_if(first, read.files.end(), is_missing);
  const auto row = static_cast<size_t>(first - read.files.begin());
  std::string message = first->problem;
  if (!text_of(*read.columns.names, static_cast<int64_t>(row)).empty())
    message = fmt::format("{}: {}{}", first->path, first->problem, advice_for(table, first->path));
  const bool has_some = count < static_cast<int64_t>(read.files.size());
  Places(table, read)
      .fail(row, message + describe_others(count - 1, "cannot be found", can_skip && has_some));
}

/// Returns a table that lists the target images in place of the input images.
PictureTable table_of_targets(PictureTable table) {
  table.options.path = *std::exchange(table.options.target_image, std::nullopt);
  table.options.extension.clear();
  table.options.weight.reset();
  return table;
}

ReadTable read_paths(const PictureTable& table) {
  ReadRequest nothing_else;
  nothing_else.use = FileUse::prediction;
  return read_table(table, nothing_else);
}

}  // namespace

const Schema<PictureCsv>& PictureCsv::schema() {
  static const auto all =
      Schema<PictureCsv>("A CSV file with one row per image.")
          .required("file", &PictureCsv::file, "path of the file")
          .required("path", &PictureCsv::path, "the column with the paths of the images, by name or index")
          .optional("extension", &PictureCsv::extension, "an extension to append to the paths, such as .jpg")
          .optional("target", &PictureCsv::target,
                    "the column of the only target, whose values are numbers or class names")
          .optional("targets", &PictureCsv::targets, "the column of each target, by output name")
          .optional("labels", &PictureCsv::labels,
                    "in place of `target`, if an image may have several labels: the columns with the labels")
          .optional("target_image", &PictureCsv::target_image,
                    "if the targets are images: the column with the paths of the target images (see "
                    "`target_images`)")
          .optional(
              "weight", &PictureCsv::weight,
              "the column of sample weights: numbers of at least 0 that multiply the losses of the samples")
          .optional("header", &PictureCsv::header,
                    "whether the first line contains the names of the columns. Default: true if columns are "
                    "selected by name")
          .optional("delimiter", &PictureCsv::delimiter,
                    "the character between values, or `whitespace` for any number of spaces and tabs",
                    csv_delimiter_check())
          .rule([](const PictureCsv& options, const ConfigNode& node, Diagnostics& diagnostics) {
            if (options.target && !options.targets.empty())
              diagnostics.error(node,
                                "give either 'target' (for the only target) or 'targets' (for several "
                                "targets, by name), not both");
            if (options.labels && (options.target || !options.targets.empty() || options.target_image))
              diagnostics.error(node,
                                "give either 'labels' (for several labels per image) or a target, not both");
            if (options.target_image && (options.target || !options.targets.empty()))
              diagnostics.error(node,
                                "give either 'target_image' (if the targets are images) or 'target' or "
                                "'targets' (if they are numbers or classes), not both");
          });
  return all;
}

CsvFormat PictureCsv::format() const {
  const auto is_name = [](const CsvColumnRef& column) { return !column.index; };
  const bool by_name =
      is_name(path) || (target && is_name(*target)) || (weight && is_name(*weight)) ||
      (target_image && is_name(*target_image)) ||
      std::any_of(targets.begin(), targets.end(), [&](const auto& one) { return is_name(one.second); });
  const std::vector<CsvColumnRef> of_labels = labels ? labels->used() : std::vector<CsvColumnRef>();
  const bool labels_by_name = std::any_of(of_labels.begin(), of_labels.end(), is_name);
  return {csv_delimiter(delimiter), header.value_or(by_name || labels_by_name)};
}

FileListing files_of_table(const PictureTable& table) {
  FileListing all{"", read_paths(table).files};
  if (table.options.target_image) {
    std::vector<ListedFile> targets = read_paths(table_of_targets(table)).files;
    std::move(targets.begin(), targets.end(), std::back_inserter(all.files));
  }
  return all;
}

PictureSet list_table(const PictureTable& table, OnError on_error, const ReadRequest& request) {
  ReadRequest of_targets = request;
  of_targets.inputs.clear();  // the inputs are images, not columns of the table
  const bool has_target_images = table.options.target_image && !request.targets.empty();
  if (has_target_images) of_targets.targets.clear();
  ReadTable read = read_table(table, of_targets);
  if (request.use == FileUse::split) reject_duplicates(table, read);
  if (on_error == OnError::error) reject_missing(table, read, request.use == FileUse::split);
  PictureSet set{table.path, picture_files({"", std::move(read.files)}), {}};
  if (has_target_images) {
    const PictureTable targets = table_of_targets(table);
    ReadTable read_targets = read_paths(targets);
    if (on_error == OnError::error) reject_missing(targets, read_targets, request.use == FileUse::split);
    set.targets = TargetPictures{table.path, picture_files({"", std::move(read_targets.files)}), {}};
  }
  set.known.columns = std::move(read.columns.parts);
  set.known.weights = std::move(read.columns.weights);
  set.known.names = std::move(read.columns.names);
  set.known.facts = std::move(read.facts);
  return set;
}

}  // namespace dtrain

// dtrain new: analyzes a CSV file, a text file or a folder of images or texts, and writes a commented
// configuration.
#include <filesystem>
#include <memory>

#include <fmt/format.h>

#include "base/files/new_file.h"
#include "base/files/paths.h"
#include "cli/console.h"
#include "cli/options.h"
#include "commands.h"
#include "data/files/input_file.h"
#include "data/pictures/picture_list.h"
#include "data/pictures/tar_index.h"
#include "profile/new_config.h"
#include "profile/new_text.h"
#include "profile/picture_pairs.h"
#include "profile/prose.h"
#include "run/run_config_parser.h"

namespace dtrain {

namespace fs = std::filesystem;

namespace {

bool is_configuration(const std::string& path) {
  const std::string extension = fs::path(path).extension().string();
  return extension == ".yaml" || extension == ".yml";
}

bool is_tar_archive(const std::string& path) {
  InputStream stream(path);
  std::string start(512, '\0');
  start.resize(stream.read(start.data(), start.size()));
  return is_tar_file(start);
}

constexpr const char *kText = "text", *kTable = "table";  // values of --as
constexpr const char* kDataOfNew = "a CSV file, a text file (.txt), or a folder of images or texts";

/// Returns the configuration for a file. If the program guesses whether a .txt file is a text or a table,
/// also adds the guess to the notes or to the error message.
NewConfig file_config(const NewOptions& options) {
  const bool is_guess = options.as.empty() && options.target.empty() && has_ending_of_text(options.data);
  const bool is_text = is_guess ? is_prose(options.data) : options.as == kText;
  const std::string guess =
      fmt::format("{} is read as a {}; `--as {}` reads it as a {}", options.data, is_text ? kText : kTable,
                  is_text ? kTable : kText, is_text ? kTable : kText);
  try {
    NewConfig config = is_text ? prose_config(options) : table_config(options);
    if (is_guess) config.notes.insert(config.notes.begin(), guess);
    return config;
  } catch (const UserError& error) {
    if (!is_guess) throw;
    throw UserError(fmt::format("{} ({})", error.what(), guess));
  }
}

NewConfig config_for(const NewOptions& options, FileType type) {
  if (type == FileType::directory) {
    if (folders_in(options.data).empty())
      throw UserError(
          fmt::format("{}: this folder contains no subfolders; expected a subfolder of images or texts for "
                      "each class, or parallel subfolders of images and their targets",
                      options.data));
    if (is_folder_of_texts(options.data)) return text_folder_config(options);
    const auto pairs = inspect_pairs(options.data);
    return pairs ? pairs_config(options, *pairs) : picture_config(options);
  }
  return file_config(options);
}

/// Prints the notes and the table of columns to standard output, and the warnings to standard error.
void say(const NewConfig& config, const OutputOptions& output) {
  if (output.text()) {
    for (const std::string& note : config.notes) print_text(one_line(note) + "\n");
    if (!config.table.empty()) print_text("\n" + config.table + "\n");
  }
  for (const std::string& warning : config.warnings) print_warning(one_line(warning));
}

/// Throws UserError if `dtrain new` cannot read the data, or if an option does not fit the data.
void check_options(const NewOptions& options, FileType type) {
  if (type != FileType::file && type != FileType::directory)
    throw UserError(fmt::format("{}: expected {}, but {}", options.data, kDataOfNew,
                                type == FileType::nothing
                                    ? "there is no such file or folder"
                                    : "found a pipe or a device; copy its content to a file"));
  if (type == FileType::file && is_configuration(options.data))
    throw UserError(fmt::format("{0}: expected {1}, found a configuration; train with: dtrain fit {0}",
                                options.data, kDataOfNew));
  if (type == FileType::file && is_tar_archive(options.data))
    throw UserError(fmt::format(
        "{0}: expected {1}, found a tar archive, which `dtrain new` cannot read. Unpack some of its images "
        "into one subfolder per class, run `dtrain new` on their folder, and then replace the reader of "
        "'train' in the configuration with `webdataset: {{files: {0}, resize: crop}}`",
        options.data, kDataOfNew));
  if (type == FileType::directory && !options.target.empty())
    throw UserError(
        fmt::format("--target: this option selects a column of a CSV file, but {} is a folder, whose "
                    "subfolders define the targets; omit the option",
                    options.data));
  if (type == FileType::directory && !options.as.empty())
    throw UserError(
        fmt::format("--as: this option is for a file, but {} is a folder; omit the option", options.data));
  if (options.as == kText && !options.target.empty())
    throw UserError(
        "--target: this option selects a column of a table, but with `--as text` the file is read as text; "
        "omit one of the two options");
}

void make_new(NewOptions options, const OutputOptions& output) {
  const FileType type = file_type(options.data);
  check_options(options, type);
  while (options.data.size() > 1 && options.data.ends_with('/')) options.data.pop_back();
  if (options.file.empty()) {
    const fs::path name = fs::path(real_path(options.data)).filename();
    options.file = (type == FileType::file ? name.stem() : name).string() + ".yaml";
  }
  const bool to_standard_output = options.file == "-";
  if (to_standard_output && output.json)
    throw UserError("--output -: --json also writes to standard output; give only one of them");
  if (!to_standard_output && file_type(options.file) != FileType::nothing)
    throw UserError(fmt::format("{}: this file exists; give another name with --output", options.file));
  options.folder = fs::path(absolute_path(options.file)).parent_path().string();
  if (!to_standard_output) options.schema = "dtrain.schema.json";
  const NewConfig config = config_for(options, type);
  if (to_standard_output) {
    print_text(config.text);
    for (const std::string& warning : config.warnings) print_warning(one_line(warning));
    return;
  }
  // Writes the schema before the configuration. If the disk becomes full, the configuration does not exist
  // yet, so the user can repeat the command. (The command fails if the configuration already exists.)
  const std::string schema_path = (fs::path(options.folder) / options.schema).string();
  if (file_type(schema_path) == FileType::nothing)
    write_new_file(schema_path, run_config_json_schema().dump(2) + "\n");
  write_new_file(options.file, config.text);
  say(config, output);
  if (output.json) {
    Json notes = Json::array(), warnings = Json::array();
    for (const std::string& note : config.notes) notes.push(note);
    for (const std::string& warning : config.warnings) warnings.push(warning);
    print_json(Json::object()
                   .set("config", options.file)
                   .set("schema", schema_path)
                   .set("notes", std::move(notes))
                   .set("columns", config.columns)
                   .set("warnings", std::move(warnings)));
  }
  if (output.text())
    print_text(fmt::format("wrote {}; train with: dtrain fit {}\n", options.file, options.file));
}

}  // namespace

void add_new(CommandLine& line) {
  Command command = line.add_command(
      "new", "Write a commented configuration for a CSV file, a text file, or a folder of images or texts");
  const auto options = std::make_shared<NewOptions>();
  const auto output = std::make_shared<OutputOptions>();
  command
      .add_option(
          "DATA", options->data,
          "A CSV file, a text file (.txt), a folder with a subfolder of images or texts for each class, or a "
          "folder with two parallel subfolders: images and their masks")
      .required();
  command
      .add_option("--output,-o", options->file,
                  "The configuration to write (default: the name of the data with .yaml); - prints it")
      .type_name("FILE.yaml");
  command
      .add_option("--target", options->target, "The column to predict (by default, `dtrain new` guesses it)")
      .type_name("COLUMN");
  command
      .add_option("--as", options->as,
                  "Read a file as a text (for a language model) or as a table (by default, `dtrain new` "
                  "guesses what a .txt file contains; other files are tables)")
      .one_of({kText, kTable});
  add_output_options(command, *output);
  command.callback([options, output] { make_new(*options, *output); });
}

}  // namespace dtrain

// A file named on the command line, in the form in which readers open it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/dataset_spec.h"
#include "data/memory_file.h"
#include "data/readers/reader.h"

namespace dtrain {

/// Name of standard input on the command line.
inline constexpr std::string_view kStandardStream = "-";

/// Expands names from the command line to paths, in order. A name that exists stays as it is; any other name
/// with *, ?, [...] or {a,b} becomes the files that match it, sorted. Throws UserError if nothing matches a
/// pattern.
std::vector<std::string> find_given_paths(const std::vector<std::string>& names);

/// An input file and its format. Standard input and the table made from JSON lines are kept in memory.
class GivenFile {
 public:
  /// Reads all of standard input for "-". Throws UserError if the file cannot be read.
  explicit GivenFile(std::string name);

  /// The name in messages.
  const std::string& name() const { return name_; }
  /// The path that readers open.
  const std::string& path() const { return path_; }
  FileFormat format() const { return format_; }
  bool is_json_lines() const { return table_.has_value(); }
  /// Returns `options`, or for JSON lines the format of their table. Throws UserError if options are given
  /// for a file that is not delimited text.
  TextOptions text_options(const TextOptions& options) const;

  /// Calls `open`, which reads the file at path(). Errors that it throws get this file's name and line
  /// numbers.
  template <class Open>
  auto with_names(Open open) const {
    try {
      return open();
    } catch (const UserError& error) {
      throw UserError(renamed(error.what()));
    } catch (const Error& error) {
      throw Error(renamed(error.what()));
    }
  }

 private:
  std::string renamed(std::string message) const;

  std::string name_, path_;
  std::optional<MemoryFile> memory_;
  FileFormat format_ = FileFormat::other;
  std::optional<TextOptions> table_;  // only for JSON lines
};

/// Opens the files at these paths. Throws UserError like GivenFile.
GivenFiles open_given_files(const std::vector<std::string>& paths);

}  // namespace dtrain

// A file named on the command line, or standard input, prepared for a reader to open.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/shape.h"
#include "data/dataset_spec.h"
#include "data/files/memory_file.h"
#include "data/files/stored_type.h"
#include "data/readers/reader.h"

namespace dtrain {

/// Name of standard input on the command line.
inline constexpr std::string_view kStandardStream = "-";

/// The supported formats of files on the command line, for messages.
inline constexpr std::string_view kGivenFiles =
    "an HDF5, .npy, csv, JSON lines, IDX or text file, an image, or a folder or tar archive of images";

/// Expands names from the command line to paths, in order. The name of an existing file is not changed. Any
/// other name with *, ?, [...] or {a,b} is a pattern and is replaced by the sorted paths of the matching
/// files. Throws UserError if a pattern matches no file.
std::vector<std::string> find_given_paths(const std::vector<std::string>& names);

/// An array in memory that was read from JSON lines.
struct GivenArray {
  std::string name;  ///< name of the input; "" if the lines do not name it
  Shape shape;       ///< [samples, ...]
  StoredType type;
  MemoryFile file;
};

/// A file named on the command line, and its format. If the file is standard input or consists of JSON lines,
/// its content is held in memory.
class GivenFile {
 public:
  /// Reads all of standard input for "-". Throws UserError if the file cannot be read.
  explicit GivenFile(std::string name);

  /// Returns the name for messages.
  const std::string& name() const { return name_; }
  /// Returns the path that readers open.
  const std::string& path() const { return path_; }
  FileFormat format() const { return format_; }
  bool is_json_lines() const { return table_.has_value() || !arrays_.empty(); }
  /// Returns the arrays of JSON lines that have nested arrays; empty for all other files.
  const std::vector<GivenArray>& arrays() const { return arrays_; }
  /// Returns the options with which the text is read. For JSON lines, returns the format of the table made
  /// from the lines; for other files, returns `options`. Throws UserError if `options` are set for a file
  /// that is not delimited text.
  TextOptions text_options(const TextOptions& options) const;

  /// Calls `open`, which reads the file at path(). If it throws an error, the message is changed so that it
  /// contains the name and the line numbers of the given file instead of those of a temporary file in memory.
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
  /// Reads the text of the file if it consists of JSON lines; otherwise has no effect.
  void read_json_lines(const std::string& text);

  std::string name_, path_;
  std::optional<MemoryFile> memory_;
  FileFormat format_ = FileFormat::other;
  std::optional<TextOptions> table_;  // format of the table made from JSON lines without nested arrays
  std::vector<GivenArray> arrays_;    // arrays of JSON lines that have nested arrays
};

/// Opens the files at these paths. Throws UserError if a file cannot be read or if standard input is given
/// twice.
GivenFiles open_given_files(const std::vector<std::string>& paths);

}  // namespace dtrain

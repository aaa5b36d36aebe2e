// The files of a folder, for data sets of many files.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace dtrain {

class InputFile;

struct ListedFile {
  std::string path;  // below the folder
  int64_t bytes = 0;
  int64_t written_ns = 0;  // the time of the last change of its content
  /// What keeps it from being read, as messages say it ("expected ..., found ..."); empty where nothing does.
  std::string problem;
  /// Where the file stands on its disk, and when anything about it was changed: whoever writes a file anew
  /// and sets its time back changes these.
  uint64_t inode = 0;
  int64_t changed_ns = 0;
};

/// Files that count as one part of a data set.
struct FileListing {
  std::string folder;  // that their paths are below; "" where they are whole
  std::vector<ListedFile> files;
};

/// All files below a folder, whatever their depth, by their paths in the order of their bytes, folder by
/// folder. Hidden files and folders (".git") are passed over, symbolic links are followed. A link that leads
/// nowhere, one that leads back to a folder that it is in, and what is no file are listed with their problem.
/// Throws UserError where the folder itself cannot be read.
std::vector<ListedFile> list_folder(const std::string& folder);

/// One file, whose path stays as it is given, listed as those of a folder.
ListedFile list_file(const std::string& path);

/// Several files as list_file() lists one, looked at by several threads.
std::vector<ListedFile> list_files(const std::vector<std::string>& paths);

/// Opens a file that was listed as `listed` and stands at `path`. Throws UserError where it cannot be read,
/// and Error where it was changed since.
std::unique_ptr<const InputFile> open_listed(const std::string& path, const ListedFile& listed);

/// The files' paths, sizes, inodes and times in one line that is another one when any of them is.
std::string fingerprint_of(const FileListing& listing);

/// "folder/path"; `path` alone where it is absolute or `folder` is "", `folder` alone where `path` is "".
std::string path_in(const std::string& folder, const std::string& path);

}  // namespace dtrain

// Lists the files of a folder, for data sets that consist of many files.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace dtrain {

class InputFile;

struct ListedFile {
  std::string path;  // relative to the folder
  int64_t bytes = 0;
  int64_t written_ns = 0;  // time of the last change of the content
  /// The reason why the file cannot be read, as messages show it ("expected a file, found a broken link").
  /// Empty if the file can be read.
  std::string problem;
  /// The inode and the time of the last status change. They show that a file was rewritten even if its
  /// modification time was set back afterwards.
  uint64_t inode = 0;
  int64_t changed_ns = 0;
};

/// Files that together form one part of a data set.
struct FileListing {
  std::string folder;  // folder to which the paths of `files` are relative; "" if the paths need no folder
  std::vector<ListedFile> files;
};

/// Lists all files below a folder, at any depth. The entries of each folder are sorted by the bytes of their
/// names. Skips hidden files and folders (such as ".git") and follows symbolic links. Broken links, links to
/// an enclosing folder, and entries that are not regular files are listed, too: ListedFile::problem says why
/// they cannot be read. Throws UserError if the folder itself cannot be read.
std::vector<ListedFile> list_folder(const std::string& folder);

/// Lists one file like list_folder(). ListedFile::path is `path`, not a path relative to a folder.
ListedFile list_file(const std::string& path);

/// Lists several files like list_file(), on several threads.
std::vector<ListedFile> list_files(const std::vector<std::string>& paths);

/// Throws UserError if the file at `path`, which was listed as `listed`, cannot be read.
void check_readable(const std::string& path, const ListedFile& listed);

/// Opens the file at `path` that was listed as `listed`. Throws UserError if it cannot be read, and Error if
/// it has changed since it was listed.
std::unique_ptr<const InputFile> open_listed(const std::string& path, const ListedFile& listed);

/// Returns one line that changes if any path, size, inode or time of the files changes.
std::string fingerprint_of(const FileListing& listing);

/// Returns "folder/path". Returns only `path` if it is absolute or if `folder` is "". Returns only `folder`
/// if `path` is "".
std::string path_in(const std::string& folder, const std::string& path);

}  // namespace dtrain

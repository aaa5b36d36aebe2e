// Which pictures a data set has, in which order, and of which classes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/folder_listing.h"

namespace dtrain {

struct PictureList {
  std::string folder;  // that the files' paths are below
  std::vector<ListedFile> files;
  std::vector<int32_t> classes;          // of each file; empty where nobody asks for classes
  std::vector<std::string> class_names;  // by number
  int64_t skipped = 0;
  std::string first_skipped;  // its path and what was wrong

  std::string path(size_t i) const { return path_in(folder, files[i].path); }
  /// Leaves out those that `is_good` (one entry a file) does not have.
  void keep(const std::vector<bool>& is_good);
};

/// The names of the folders in a folder, sorted; hidden ones are none. Of what is no folder: none.
std::vector<std::string> folders_in(const std::string& folder);

/// Every file below the folder. Files beside folders are passed over, unless they are pictures by their
/// names.
PictureList list_pictures(const std::string& folder);

/// Every file in the folders of a folder, each of which is a class. `class_names` are the folders in the
/// order in which they are numbered; where it is empty, it is the order of their names. Files beside the
/// folders are passed over, unless they are pictures by their names, which is an error. Throws UserError for
/// a folder that is none of the names, and for one without files.
PictureList list_classes(const std::string& folder, const std::vector<std::string>& class_names);

}  // namespace dtrain

// What a folder of pictures, or a table that names some, seems to hold, for `dtrain new`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "table_profile.h"

namespace dtrain {

/// The usual size of pictures, and whether they have colours.
struct PictureSizes {
  int64_t height = 0, width = 0;  // in the middle of those that were looked at
  bool grey = false;              // all of them
};

/// A column of a table that names pictures.
struct NamedPictures {
  size_t column = 0;
  std::string folder;     // where they are; "" where that is the table's own
  std::string extension;  // that the names lack
  PictureSizes sizes;
};

/// The first column whose values name pictures in the table's folder or in a folder of that; nothing where
/// there is none.
std::optional<NamedPictures> find_named_pictures(const TableProfile& table, const std::string& path);

struct LookedAtPictures {
  std::string train;                 // the folder whose folders are the classes
  std::string validation, test;      // folders of class folders beside it; "" where there are none
  std::vector<std::string> classes;  // sorted
  std::vector<int64_t> counts;       // pictures of each, in `train`
  PictureSizes sizes;
};

/// Lists the files, and reads the headers of some. Throws UserError where the folder has no folders with
/// pictures (JPEG, PNG, BMP), or a single one.
LookedAtPictures look_at_pictures(const std::string& folder);

}  // namespace dtrain

// What a folder of pictures, or a table that names some, seems to hold, for `dtrain new`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "profile/table_profile.h"

namespace dtrain {

/// What the headers of files say that are to be pictures.
struct PictureLook {
  int64_t files = 0;               // all of them
  int64_t looked = 0;              // those whose headers were read: of many only some, evenly spread
  int64_t bad = 0;                 // of these, what is no picture, or is not there
  std::vector<std::string> first;  // the first of the bad ones: their paths
  int64_t height = 0, width = 0;   // medians over those that are pictures
  bool grey = false;               // all of them

  bool has_pictures() const { return bad < looked; }
};

/// A column of a table that names pictures.
struct NamedPictures {
  size_t column = 0;
  std::string folder;     // where they are; "" where that is the table's own
  std::string extension;  // that the names lack
  PictureLook look;       // at those that the profile of the table has the names of
};

/// The first column whose values name pictures in the table's folder or in a folder of that. Where there is
/// none: a column of what ends as names of pictures do, in a table that has little else, though none of these
/// is there. Else nothing.
std::optional<NamedPictures> find_named_pictures(const TableProfile& table, const std::string& path);

struct LookedAtPictures {
  /// A folder of class folders; path "" where there is none.
  struct Split {
    std::string path;
    PictureLook look;
  };
  Split train, validation, test;     // the others beside `train`
  std::vector<std::string> classes;  // sorted
  std::vector<int64_t> counts;       // pictures of each, in `train`; files where not all were looked at
  std::string warning;               // what seems wrong with the classes; "" where nothing does
};

/// Lists the files, and reads their headers. Throws UserError where the folder has no folders with pictures
/// (JPEG, PNG, BMP), or a single one, and for a class without any.
LookedAtPictures look_at_pictures(const std::string& folder);

}  // namespace dtrain

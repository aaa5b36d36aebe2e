// Analyzes a folder of images, or a table that lists images, for `dtrain new`.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/pictures/picture_source.h"
#include "profile/table_profile.h"

namespace dtrain {

/// Statistics from the headers of presumed image files.
struct PictureLook {
  int64_t files = 0;               // total number
  int64_t looked = 0;              // number of headers read; an evenly spaced sample if there are many files
  int64_t bad = 0;                 // number of these files that are missing or not images
  std::vector<std::string> first;  // paths of the first bad files
  int64_t height = 0, width = 0;   // medians over the images
  bool grey = false;               // whether all images are gray

  bool has_pictures() const { return bad < looked; }
};

/// A column of a table that lists images.
struct NamedPictures {
  size_t column = 0;
  std::string folder;     // folder of the images; "" for the table's own folder
  std::string extension;  // extension missing in the names
  PictureLook look;       // findings about the files listed in the table's profile
};

/// Returns the first column whose values name images in the table's folder or a subfolder. If there is none,
/// returns a column of values with image file extensions, whose files are missing, unless several other
/// columns could describe the images. Otherwise returns nullopt.
std::optional<NamedPictures> find_named_pictures(const TableProfile& table, const std::string& path);

/// Reads the headers of all files, or of a sample if there are very many. If `is_bad` is given, sets it to
/// one flag per file: true if all files were read and this one is not an image.
PictureLook inspect_files(const PictureSource& files, std::vector<bool>* is_bad = nullptr);

/// Returns a warning about files that are not images, with the reader's option that leaves them out; "" if
/// all are images. `where`: "in DIR".
std::string describe_bad(const PictureLook& look, const std::string& where);

struct InspectedPictures {
  /// A folder of class folders; `path` is "" if there is none.
  struct Split {
    std::string path;
    PictureLook look;
  };
  Split train, validation, test;     // validation and test are next to `train`
  std::vector<std::string> classes;  // sorted
  std::vector<int64_t> counts;       // images of each class in `train`; files if only a sample was read
  std::string warning;               // suspected problems with the classes; "" if none
};

/// Returns the path of the subfolder with one of these names, if that subfolder has subfolders itself, as a
/// split has one for each class; else "".
std::string split_called(const std::string& folder, std::span<const std::string_view> names);

/// Lists the files and reads their headers. Throws UserError if the folder does not have at least two class
/// folders with images (JPEG, PNG, BMP), or if a class has no images.
InspectedPictures inspect_pictures(const std::string& folder);

}  // namespace dtrain

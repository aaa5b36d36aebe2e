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
  int64_t files = 0;   // total number
  int64_t looked = 0;  // number of headers read; an evenly spaced sample if there are many files
  // Number of headers that could not be read, because the file is missing or not an image.
  int64_t bad = 0;
  std::vector<std::string> first;  // paths of the first files that count as `bad`
  int64_t height = 0, width = 0;   // median height and width of the images
  bool gray = false;               // whether all images are gray
  bool has_16_bits = false;        // whether any image has 16-bit values

  bool has_pictures() const { return bad < looked; }
};

/// A column of a table that lists images.
struct NamedPictures {
  size_t column = 0;
  std::string folder;     // folder that contains the images; "" for the folder of the table
  std::string extension;  // extension that the names in the column lack, e.g. ".png"
  PictureLook look;       // statistics of the image files that the table names
};

/// Returns the first column whose values are names of images in the folder of the table or in a subfolder. If
/// there is no such column, returns a column whose values have the extensions of image files, even if the
/// files do not exist. Such a column is returned only if at most one other column could describe the images.
/// Otherwise returns nullopt.
std::optional<NamedPictures> find_named_pictures(const TableProfile& table, const std::string& path);

/// Reads the headers of all files. If there are very many files, reads only a sample of them. `is_bad`, if
/// not null, gets one flag per file. A flag is true if the file is not an image. If only a sample is read,
/// all flags are false.
PictureLook inspect_files(const PictureSource& files, std::vector<bool>* is_bad = nullptr);

/// Returns a warning about files that are not images. The warning names the reader's option that skips such
/// files. Returns "" if all files are images. `where`: e.g. "in DIR".
std::string describe_bad(const PictureLook& look, const std::string& where);

struct InspectedPictures {
  /// The folder of a split, which contains one folder for each class. `path` is "" if the split has no
  /// folder.
  struct Split {
    std::string path;
    PictureLook look;
  };
  // The validation and test folders are in the same parent folder as the training folder.
  Split train, validation, test;
  std::vector<std::string> classes;  // sorted
  // Number of images of each class in `train`. If only a sample of the headers was read, this is the number
  // of files instead.
  std::vector<int64_t> counts;
  std::string warning;  // suspected problems with the classes; "" if none
};

/// Returns the path of the subfolder whose name is one of `names`. The subfolder must itself contain folders,
/// because the folder of a split contains one folder for each class. Returns "" if there is no such
/// subfolder.
std::string split_called(const std::string& folder, std::span<const std::string_view> names);

/// Lists the images in a folder and reads their headers. Throws UserError if the folder does not contain
/// folders of images (JPEG, PNG, BMP) for at least two classes, or if a class has no images.
InspectedPictures inspect_pictures(const std::string& folder);

}  // namespace dtrain

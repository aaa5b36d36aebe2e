// Lists the images in a folder, in a defined order and with their classes.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/columns/column.h"
#include "data/files/folder_listing.h"

namespace dtrain {

struct PictureClasses {
  FileListing files;
  std::vector<int32_t> classes;          // class index of each file
  std::vector<std::string> class_names;  // indexed by class index
};

/// Usual names of the folders that contain the splits of a data set.
inline constexpr std::array<std::string_view, 2> kTrainFolders{"train", "training"};
inline constexpr std::array<std::string_view, 2> kTestFolders{"test", "testing"};
inline constexpr std::array<std::string_view, 3> kValidationFolders{"validation", "val", "valid"};

/// Checks whether subfolders that are used as classes may be splits instead. Returns a warning if one of
/// `names` is a usual name of a training split and another one is a usual name of a validation or test split
/// (ignoring case). Otherwise returns "".
std::string warning_of_splits(const std::string& folder, const std::vector<std::string>& names);

/// Returns true if a path has the extension of an image: .jpg, .jpeg, .png or .bmp.
bool has_ending_of_picture(const std::string& path);

/// Returns the sorted names of the subfolders of a folder. Hidden subfolders are left out. The result is
/// empty if `folder` is not a folder.
std::vector<std::string> folders_in(const std::string& folder);

/// Lists all files in a folder and its subfolders. If there are subfolders, files directly in the folder are
/// skipped unless they have the extension of an image.
FileListing list_pictures(const std::string& folder);

/// Lists all files in the subfolders of a folder. Each subfolder is a class. `class_names` contains the names
/// of the subfolders in the order of the class indices; if it is empty, the subfolders are sorted by name.
/// Files directly in the folder are skipped. If such a file has the extension of an image, throws UserError.
/// Also throws UserError if a subfolder is not in `class_names`, or if a subfolder contains no files. `what`
/// is the word for the files in messages.
PictureClasses list_classes(const std::string& folder, const std::vector<std::string>& class_names,
                            const std::string& what = "images");

/// Returns a column with the class index of each file (int32 scalars).
std::shared_ptr<const Column> class_column(const PictureClasses& list);

}  // namespace dtrain

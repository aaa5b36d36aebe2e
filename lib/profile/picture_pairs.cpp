#include "profile/picture_pairs.h"

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <set>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "base/utf8.h"
#include "data/loader/parallel.h"
#include "data/pictures/picture_column.h"
#include "data/readers/images/target_images.h"

namespace dtrain {

namespace {

using namespace std::string_view_literals;

constexpr std::array kImageNames{"images"sv, "image"sv, "imgs"sv, "img"sv, "inputs"sv, "input"sv};
constexpr std::array kMaskNames{
    "masks"sv,        "mask"sv,          "labels"sv,       "label"sv,       "annotations"sv, "annotation"sv,
    "segmentation"sv, "segmentations"sv, "ground_truth"sv, "groundtruth"sv, "gt"sv};
constexpr std::array kTargetNames{"targets"sv, "target"sv, "outputs"sv, "output"sv};
/// Pairs of folder names. The first folder contains images, and the second contains the images that a model
/// should compute from them.
constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kImagePairs{{{"noisy", "clean"},
                                                                                    {"degraded", "clean"},
                                                                                    {"low", "high"},
                                                                                    {"lr", "hr"},
                                                                                    {"blurred", "sharp"},
                                                                                    {"blur", "sharp"},
                                                                                    {"source", "target"},
                                                                                    {"x", "y"}}};

constexpr size_t kMostValues = 64;         // maximum number of different values in one mask
constexpr int64_t kMostMasksRead = 2'000;  // if there are more masks, an evenly spaced sample is read

enum class Targets { masks, images, unknown };

/// Two parallel folders and the meaning of their names.
struct Candidate {
  PairedFolders folders;
  Targets targets = Targets::unknown;
  bool could_be_classes = false;  // whether the folders could also be two classes, according to their names
};

bool is_among(std::span<const std::string_view> known, const std::string& name) {
  return std::find(known.begin(), known.end(), in_small_letters(name)) != known.end();
}

std::string find_among(std::span<const std::string_view> known, const std::vector<std::string>& names) {
  const auto found = std::find_if(names.begin(), names.end(),
                                  [&](const std::string& name) { return is_among(known, name); });
  return found == names.end() ? "" : *found;
}

/// Counts the file names in two folders. All counts are 0 if the folders cannot be compared.
NameCounts compare_names(const PairedFolders& folders) {
  try {
    return count_names(folders.images, folders.targets);
  } catch (const UserError&) {  // an empty folder, or images of the same name
    return {};
  }
}

/// Returns true if more than half of all image names in two folders occur in both folders.
bool mostly_match(const PairedFolders& folders) {
  const NameCounts names = compare_names(folders);
  return 2 * names.shared > names.all;
}

/// Distinct pixel values: gray levels, or colors as 0xrrggbb.
using Values = std::set<uint32_t>;

/// Returns the set of pixel values in an image with 1 or 3 channels. Stops when the set has
/// more than kMostValues elements. Throws UserError if the image cannot be decoded as a mask with this number
/// of channels.
Values values_of(const PictureSource& source, int64_t i, int channels) {
  const PictureHeader header = header_of_picture(source, i);
  std::vector<uint8_t> file;
  source.read(i, std::numeric_limits<int64_t>::max(), file);
  PictureForm form{header.height, header.width, channels};
  form.is_mask = true;
  std::vector<uint8_t> pixels(form.bytes());
  decode_picture(file, form, pixels.data());
  Values values;
  uint32_t last = std::numeric_limits<uint32_t>::max();
  for (const uint8_t* pixel = pixels.data(); pixel != pixels.data() + pixels.size(); pixel += channels) {
    const uint32_t value =
        channels == 1 ? *pixel : uint32_t{pixel[0]} << 16 | uint32_t{pixel[1]} << 8 | pixel[2];
    if (value != last) values.insert(value);  // neighboring pixels usually have the same class
    last = value;
    if (values.size() > kMostValues) break;
  }
  return values;
}

/// Returns the set of pixel values in up to `most` masks. Files that are not images are skipped. Returns
/// nullopt in these cases: a mask has more than kMostValues values, a mask is a JPEG file, all masks together
/// have more than MaskClasses::kMost values, or no mask can be decoded. If an image cannot be decoded as a
/// mask with 3 channels, it is damaged and is skipped. If it cannot be decoded as a mask with 1 channel, it
/// may be a color image, so the result is nullopt.
std::optional<Values> values_of_masks(const PictureSource& source, int channels, int64_t most) {
  const int64_t count = std::min(most, source.size());
  std::vector<Values> found(static_cast<size_t>(count));
  std::vector<char> is_other(found.size(), 0);
  run_blocks(count, [&](int64_t block) {
    const int64_t i = block * source.size() / count;
    const auto place = static_cast<size_t>(block);
    bool exact = true;
    try {
      exact = header_of_picture(source, i).exact;
    } catch (const UserError&) {
      return;  // such files are counted by PictureLook::bad
    }
    try {
      found[place] = values_of(source, i, channels);
      is_other[place] = found[place].size() > kMostValues;
    } catch (const UserError&) {
      is_other[place] = channels == 1 || !exact;
    }
  });
  if (std::find(is_other.begin(), is_other.end(), 1) != is_other.end()) return std::nullopt;
  Values all;
  for (const Values& one : found) all.insert(one.begin(), one.end());
  return all.empty() || all.size() > MaskClasses::kMost ? std::nullopt : std::optional(all);
}

/// Returns true if the values look like class numbers: they begin at 0 and have few gaps.
bool are_numbers(const Values& values) {
  return *values.begin() == 0 && *values.rbegin() < 2 * values.size();
}

/// Returns the classes of masks, and sets `class_count` to the number of classes. Reads up to `most` masks.
/// Returns nullopt if the images are not masks. Masks must have at least two classes.
std::optional<MaskClasses> classes_of(const PictureSource& source, int64_t most, int64_t& class_count) {
  const auto stored = values_of_masks(source, 1, most);
  if (stored && stored->size() > 1 && are_numbers(*stored)) {
    class_count = *stored->rbegin() + 1;
    return MaskClasses();
  }
  const auto colors = values_of_masks(source, 3, most);
  if (!colors || colors->size() < 2) return std::nullopt;
  class_count = static_cast<int64_t>(colors->size());
  return MaskClasses{{colors->begin(), colors->end()}};
}

/// Returns true if the targets are masks of few classes and the images are not masks. Several files of each
/// folder are read: a single small gray image, such as a digit, also has few values, but several of them have
/// many values together.
bool look_like_masks(const PairedFolders& folders) {
  constexpr int64_t kTries = 20;
  const NameCounts names = compare_names(folders);
  if (names.all == 0 || names.shared < names.all) return false;
  const PictureSet set = list_pairs(folders.images, folders.targets);
  int64_t count = 0;
  return classes_of(*set.targets->pictures, kTries, count) && count <= int64_t{kMostValues} &&
         !classes_of(*set.pictures, kTries, count);
}

/// If two folders have typical names for images and their targets, returns the folder of the images and the
/// folder of the targets. Sets could_be_classes in the result, because two classes may also have such names.
/// Returns nullopt for other names.
std::optional<Candidate> pair_by_names(const PairedFolders& folders, const std::string& images,
                                       const std::string& targets) {
  const std::pair<std::string, std::string> small{in_small_letters(images), in_small_letters(targets)};
  const bool are_images = std::any_of(kImagePairs.begin(), kImagePairs.end(), [&](const auto& known) {
    return known.first == small.first && known.second == small.second;
  });
  if (are_images) return Candidate{folders, Targets::images, true};
  if (is_among(kMaskNames, targets)) return Candidate{folders, Targets::masks, true};
  if (is_among(kImageNames, images)) return Candidate{folders, Targets::unknown, true};
  return std::nullopt;
}

/// Returns the two parallel folders inside `folder`, or nullopt if there are none.
std::optional<Candidate> pair_in(const std::string& folder) {
  const std::vector<std::string> names = folders_in(folder);
  const auto folders = [&](const std::string& images, const std::string& targets) {
    return PairedFolders{path_in(folder, images), path_in(folder, targets)};
  };
  const std::string images = find_among(kImageNames, names), masks = find_among(kMaskNames, names);
  if (!images.empty() && !masks.empty()) return Candidate{folders(images, masks), Targets::masks};
  if (names.size() != 2) return std::nullopt;
  const std::string target = find_among(kTargetNames, names);
  if (!images.empty() && !target.empty()) return Candidate{folders(images, target)};
  for (const bool swapped : {false, true}) {
    const std::string &first = names[swapped], &second = names[!swapped];
    const PairedFolders pair = folders(first, second);
    const auto named = pair_by_names(pair, first, second);
    if (named && mostly_match(pair)) return named;
    if (look_like_masks(pair)) return Candidate{pair, Targets::masks};
  }
  return std::nullopt;
}

/// Returns the subfolders for one split in both folders. The paths are "" if one of the folders has no
/// subfolder for this split.
PairedFolders split_below(const PairedFolders& folders, std::span<const std::string_view> names) {
  const std::string images = find_among(names, folders_in(folders.images));
  const std::string targets = find_among(names, folders_in(folders.targets));
  if (images.empty() || targets.empty()) return {};
  return {path_in(folders.images, images), path_in(folders.targets, targets)};
}

/// Returns the two parallel folders inside the folder of one split, or nullopt if there are none.
std::optional<Candidate> pair_in_split(const std::string& folder, std::span<const std::string_view> names) {
  const std::string split = split_called(folder, names);
  return split.empty() ? std::nullopt : pair_in(split);
}

/// Lists the files of parallel folders. Throws UserError for files without a partner.
PictureSet list_files_of(const Candidate& found) {
  const PairedFolders& folders = found.folders;
  try {
    return list_pairs(folders.images, folders.targets);
  } catch (const UserError& error) {
    if (!found.could_be_classes) throw;
    throw UserError(fmt::format("{}. If {} and {} are two classes, give the folders other names",
                                error.what(), folders.images, folders.targets));
  }
}

[[noreturn]] void reject_jpeg(const std::string& name) {
  throw UserError(
      fmt::format("{}: masks must be PNG or BMP files, found a JPEG file; JPEG compression changes the "
                  "values of pixels. Save the masks as PNG files, or rename the folder to 'targets' if the "
                  "files are images that the model should compute",
                  name));
}

/// Throws UserError if a mask is a JPEG file.
void reject_jpeg_masks(const PictureSource& masks) {
  for (int64_t i = 0; i < std::min(masks.size(), kMostMasksRead); ++i) {
    bool exact = true;
    try {
      exact = header_of_picture(masks, i).exact;
    } catch (const UserError&) {  // such files are counted by PictureLook::bad
    }
    if (!exact) reject_jpeg(masks.name(i));
  }
}

}  // namespace

std::optional<InspectedPairs> inspect_pairs(const std::string& folder) {
  InspectedPairs found;
  auto train = pair_in_split(folder, kTrainFolders);
  if (train) {
    found.validation = pair_in_split(folder, kValidationFolders).value_or(Candidate()).folders;
    found.test = pair_in_split(folder, kTestFolders).value_or(Candidate()).folders;
  } else {
    train = pair_in(folder);
    if (!train) return std::nullopt;
    if (const PairedFolders below = split_below(train->folders, kTrainFolders); !below.images.empty()) {
      found.validation = split_below(train->folders, kValidationFolders);
      found.test = split_below(train->folders, kTestFolders);
      train->folders = below;
    }
  }
  found.train = train->folders;
  const PictureSet set = list_files_of(*train);
  const PictureSource& targets = *set.targets->pictures;
  found.pairs = targets.size();
  found.images = inspect_files(*set.pictures);
  found.targets = inspect_files(targets);
  if (!found.images.has_pictures() || !found.targets.has_pictures()) return std::nullopt;
  found.are_called_masks = train->targets == Targets::masks;
  if (found.are_called_masks) reject_jpeg_masks(targets);
  if (train->targets == Targets::images) return found;
  found.classes = classes_of(targets, kMostMasksRead, found.class_count);
  found.examined = std::min(kMostMasksRead, found.pairs);
  return found;
}

std::string describe_suspected_pairs(const std::string& folder) {
  const std::string split = split_called(folder, kTrainFolders);
  const std::string& parent = split.empty() ? folder : split;
  const std::vector<std::string> names = folders_in(parent);
  if (names.size() != 2) return "";
  for (const bool swapped : {false, true}) {
    const std::string &images = names[swapped], &targets = names[!swapped];
    const PairedFolders folders{path_in(parent, images), path_in(parent, targets)};
    if (!pair_by_names(folders, images, targets)) continue;
    const NameCounts counts = compare_names(folders);
    if (counts.all == 0) return "";
    return fmt::format(
        "'{}' and '{}' are treated as two classes, because only {} of {} file names occur in both folders; "
        "if the folders contain images and their targets, give each image and its target the same name, "
        "apart from the extension",
        images, targets, counts.shared, counts.all);
  }
  return "";
}

}  // namespace dtrain

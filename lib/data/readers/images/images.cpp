// The images reader: one folder per class, images listed in a table, or images in an HDF5 file.
#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files/paths.h"
#include "config/load/files.h"
#include "data/dataset_spec.h"
#include "data/located_error.h"
#include "data/readers/images/hdf5_pictures.h"
#include "data/readers/images/picture_fields.h"
#include "data/readers/images/picture_table.h"
#include "data/readers/images/target_images.h"
#include "data/readers/open_any.h"
#include "data/readers/reader.h"

namespace dtrain {

namespace {

struct ImagesOptions : PictureOptions {
  std::optional<std::string> directory;
  std::optional<PictureCsv> csv;
  std::optional<PictureHdf5> hdf5;
  std::optional<TargetImages> target_images;
  std::vector<std::string> class_names;
};

class ImagesReader final : public Reader {
 public:
  explicit ImagesReader(const ImagesOptions& options) : options_(options) {}

  SourceColumns open(const ReadRequest& request) const override {
    check_one_picture(request);
    paths(request);  // reports all missing files and folders together
    PictureSet set = options_.csv    ? list_table(table(request), options_.on_error, with_names(request))
                     : options_.hdf5 ? list_datasets(request.find(options_.hdf5->file), request)
                                     : list_folder_of(request.find(*options_.directory), request);
    set.can_skip = true;
    return open_set(std::move(set), request);
  }

  std::vector<std::string> files() const override {
    std::vector<std::string> all;
    if (options_.csv) all.push_back(options_.csv->file);
    if (options_.hdf5) all.push_back(options_.hdf5->file);
    if (options_.directory) all.push_back(*options_.directory);
    if (has_target_folder()) all.push_back(*options_.target_images->directory);
    return all;
  }
  std::vector<std::string> paths(const ReadRequest& request) const override {
    // If a table lists the images, the folder `directory` is not one of the paths, because it may also hold
    // other files.
    std::vector<std::string> all;
    ErrorCollector errors;
    errors.attempt({}, [&] { all.push_back(request.find(files().front())); });
    if (has_target_folder())
      errors.attempt({}, [&] { all.push_back(request.find(*options_.target_images->directory)); });
    if (options_.csv && options_.directory) errors.attempt({}, [&] { request.find(*options_.directory); });
    errors.throw_if_errors();
    return all;
  }
  FileListing named_files(const ReadRequest& request) const override {
    return options_.csv ? files_of_table(table(request)) : FileListing();
  }

  std::optional<SourceColumns> open_other(const std::string& path, FileFormat format, const TextOptions& text,
                                          const ReadRequest& request) const override {
    if (request.inputs.size() != 1) return std::nullopt;
    if (options_.hdf5 && format == FileFormat::hdf5) return open_set(list_datasets(path, request), request);
    if (!options_.csv && !options_.hdf5 && !request.targets.empty() && format == FileFormat::picture &&
        file_type(path) == FileType::directory)
      return open_set(has_target_folder() ? list_given_pairs(path, request) : list_folder_of(path, request),
                      request);
    if (!options_.csv || format != FileFormat::text) return std::nullopt;
    // Searches the folder of this table before the run's folder of images, which may contain other images
    // with the same names.
    PictureTable other{path, folder_if_there(request), *options_.csv, options_.csv->format(), true};
    if (text.header) other.format.header = text.header;
    if (text.delimiter) other.format.delimiter = *text.delimiter;
    return open_set(list_table(other, options_.on_error, request), request);
  }

  bool has_weights() const override { return options_.csv && options_.csv->weight; }
  bool has_labels() const override { return options_.csv && options_.csv->labels; }
  std::optional<PictureOptions> picture_options() const override { return options_; }
  std::optional<TargetPicture> target_picture() const override {
    if (!has_target_folder() && !(options_.csv && options_.csv->target_image)) return std::nullopt;
    return target_images().pixels();
  }
  MaskClasses mask_classes() const override { return target_images().classes.value_or(MaskClasses()); }
  std::optional<int64_t> target_classes() const override {
    const MaskClasses classes = mask_classes();
    if (!target_picture() || classes.are_numbers()) return std::nullopt;
    return static_cast<int64_t>(classes.colors.size());
  }

 private:
  bool has_target_folder() const { return options_.target_images && options_.target_images->directory; }
  TargetImages target_images() const { return options_.target_images.value_or(TargetImages()); }

  /// Opens the images of `set`, and its target images if it has any.
  SourceColumns open_set(PictureSet set, const ReadRequest& request) const {
    if (set.targets) {
      if (request.targets.size() != 1)
        request.fail(
            fmt::format("targets that are images need a model with one target; this model has {} targets",
                        request.targets.size()));
      set.targets->row = target_row(target_images(), picture_form(options_, request.inputs[0]), request);
    }
    return open_pictures(std::move(set), options_, request.inputs[0]);
  }

  /// Returns the request with the option `class_names` as the class names of the only target. Class names
  /// that the request already has take precedence.
  ReadRequest with_names(const ReadRequest& request) const {
    ReadRequest all = request;
    if (!options_.class_names.empty()) all.facts.class_names.try_emplace("target", options_.class_names);
    return all;
  }

  PictureSet list_given_pairs(const std::string& folder, const ReadRequest& request) const {
    PictureSet pairs = list_pairs_below(folder, *options_.directory, *options_.target_images->directory);
    pairs.known.facts = with_names(request).facts;
    return pairs;
  }

  PictureSet list_folder_of(const std::string& folder, const ReadRequest& request) const {
    if (request.targets.empty()) return picture_set(list_pictures(folder));
    if (request.targets.size() > 1)
      request.fail(
          fmt::format("images in folders need a model with at most one target; this model has {} targets",
                      request.targets.size()));
    if (has_target_folder()) {
      PictureSet pairs = list_pairs(folder, request.find(*options_.target_images->directory));
      pairs.known.facts = with_names(request).facts;
      return pairs;
    }
    const auto known = with_names(request).facts.class_names;
    const auto names = known.find("target");
    PictureClasses classes =
        list_classes(folder, names == known.end() ? std::vector<std::string>() : names->second);
    const std::string warning = names == known.end() ? warning_of_splits(folder, classes.class_names) : "";
    PictureSet set = picture_set(std::move(classes));
    set.known.facts.fields = request.facts.fields;
    if (!warning.empty()) set.known.warnings.push_back(warning);
    return set;
  }

  PictureSet list_datasets(const std::string& path, const ReadRequest& request) const {
    const std::vector<std::string> names = options_.hdf5->resolve(request);
    PictureSet set{path, hdf5_pictures(path, names[0]), {}};
    for (size_t i = 1; i < names.size(); ++i) {
      set.known.columns.push_back(open_hdf5(path, names[i]));
      if (set.known.columns.back()->size() != set.pictures->size())
        throw UserError(fmt::format("{}: expected a target for each of {} images, found {} in '{}'", path,
                                    set.pictures->size(), set.known.columns.back()->size(), names[i]));
    }
    set.known.facts = request.facts;
    if (!options_.class_names.empty() && names.size() == 2)
      set.known.facts.class_names.try_emplace("target", options_.class_names);
    return set;
  }

  /// Returns the folder of the option `directory`; "" if it is not set or does not exist on this machine.
  std::string folder_if_there(const ReadRequest& request) const {
    if (!options_.directory) return "";
    const std::string folder = find_file(*options_.directory, request.folder());
    return file_type(folder) == FileType::directory ? folder : "";
  }

  PictureTable table(const ReadRequest& request) const {
    return {request.find(options_.csv->file), options_.directory ? request.find(*options_.directory) : "",
            *options_.csv, options_.csv->format()};
  }

  ImagesOptions options_;
};

/// Reports options that contradict `target_images`.
void check_target_images(const ImagesOptions& options, const ConfigNode& node, Diagnostics& diagnostics) {
  if (!options.target_images) return;
  const TargetImages& targets = *options.target_images;
  const ConfigNode& written = *node.find("target_images");
  const auto refuse = [&](const std::string& why) {
    diagnostics.error(written, std::string("target_images: ") + why);
  };
  if (options.hdf5)
    refuse(
        "this option cannot be used together with 'hdf5'. It applies only to images in folders and to images "
        "that "
        "a CSV file lists. To read arrays from an HDF5 file, use the reader `hdf5`");
  else if (options.csv && targets.directory)
    refuse("'csv' lists the paths of the target images in its column 'target_image'; leave 'directory' out");
  else if (options.csv && !options.csv->target_image)
    refuse("give 'target_image' in 'csv': the column with the paths of the target images");
  else if (!options.csv && !targets.directory)
    refuse("give 'directory': the folder with the target image of each image");
  if (options.class_names.empty()) return;
  if (!targets.classes)
    refuse(
        "'class_names' applies only to masks; remove it, or give 'classes' if the target images are masks");
  else if (!targets.classes->are_numbers() && options.class_names.size() != targets.classes->colors.size())
    refuse(fmt::format("expected as many 'classes' as 'class_names', found {} classes and {} names",
                       targets.classes->colors.size(), options.class_names.size()));
}

}  // namespace

void add_images(Registry<Reader>& table) {
  Schema<ImagesOptions> schema(
      "JPEG, PNG and BMP files: in one folder per class, listed in a CSV file, or stored in HDF5. Images are "
      "rotated according to EXIF and resized bilinearly with antialiasing to [height, width, channels], with "
      "values from 0 to 255. If no targets are needed, all files in the folder and its subfolders are read.");
  schema.example("{directory: flowers/train, size: [224, 224], resize: crop}");
  schema
      .optional("directory", &ImagesOptions::directory,
                "the folder with one subfolder of images per class. If `csv` is given: the folder to which "
                "the paths in the table are relative (default: the folder of the CSV file). If "
                "`target_images` is given: the folder of the input images")
      .optional("csv", &ImagesOptions::csv, "a table that lists the images and their targets")
      .optional("hdf5", &ImagesOptions::hdf5,
                "an HDF5 file with encoded images (JPEG, PNG or BMP). Each element of a dataset (if the "
                "elements have variable length) or each row (if the dataset has two dimensions) contains the "
                "bytes of one image")
      .optional("target_images", &ImagesOptions::target_images,
                "options for targets that are images. They name the folder that contains the target image of "
                "each image in `directory`. If `csv` lists the images, it lists the target images, too "
                "(`target_image`), and no folder is given here");
  add_picture_fields(schema);
  schema
      .rule([](const ImagesOptions& options, const ConfigNode& node, Diagnostics& diagnostics) {
        if (options.hdf5 ? options.csv || options.directory : !options.csv && !options.directory)
          diagnostics.error(node,
                            "give one of 'directory' (a folder of images for each class), 'csv' (a table "
                            "with the paths of images) and 'hdf5' (datasets of encoded images)");
        check_target_images(options, node, diagnostics);
      })
      .positional("directory");
  table.add<ImagesReader>("images", schema);
}

}  // namespace dtrain

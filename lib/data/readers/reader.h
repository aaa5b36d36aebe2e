// Readers: the file formats that samples come from.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/tensor_spec.h"
#include "config/registry.h"
#include "data/columns/column.h"
#include "data/columns/source_columns.h"
#include "data/files/folder_listing.h"
#include "data/pictures/mask_classes.h"
#include "data/pictures/picture_options.h"
#include "data/readers/csv/table.h"

namespace dtrain {

struct TextOptions;     // data/dataset_spec.h
struct WindowsOptions;  // data/windows/windows_options.h

/// The purpose for which files are opened.
enum class FileUse {
  split,       // a split of the configuration
  evaluation,  // a labelled file that is not in the configuration; it may have other columns
  prediction,  // like `evaluation`, but targets and weights are not read
};

/// A request to a reader: the location of its files, and the inputs and targets for which it opens them.
/// `inputs` and `targets` describe the columns before the transforms; readers of formats that leave a choice
/// (csv, synthetic) follow them.
struct ReadRequest {
  /// Folder in which relative names are searched, before $DTRAIN_DATA; "" means the folder of `place`.
  std::string root;
  Mark place;  // location of the split in the configuration
  std::vector<TensorSpec> inputs, targets;
  /// Facts about the training split, with which other files are read. If they are empty, the reader follows
  /// its options and finds the facts.
  SourceFacts facts;
  FileUse use = FileUse::split;
  /// Set if rows become windows: the columns that sort the rows, and whether csv inputs include the targets.
  const WindowsOptions* windows = nullptr;
  /// The fraction of the samples that other splits take from the end, for readers with an overlap(). No
  /// vocabulary may be learned from it.
  double held_out = 0;

  /// Returns the path of a file. Throws UserError if the file is empty, or not in the folder of the data.
  std::string find(const std::string& file_name) const;
  /// Returns the path of a file, which may be empty. Throws UserError if it is not in the folder of the data.
  std::string find_any(const std::string& file_name) const;
  /// Returns a location in the folder that find() searches.
  Mark folder() const;
  /// Throws UserError with this message.
  [[noreturn]] void fail(const std::string& message) const;
};

/// Format of a path given for predictions, determined by its first bytes. A folder counts as `picture`.
enum class FileFormat { hdf5, npy, idx, picture, tar, text, other };

/// Holds a reader's options. Immutable; any thread may open it.
class Reader {
 public:
  virtual ~Reader() = default;
  /// Opens one column for each of the request's inputs and targets, in that order, then the columns that
  /// request.windows names with `by` and `time`. All have the same number of rows. Throws UserError for a
  /// file that is not in the expected format, with its path, and the expected and found content.
  virtual SourceColumns open(const ReadRequest& request) const = 0;
  /// Returns the names of the reader's files and folders as written in the configuration.
  virtual std::vector<std::string> files() const = 0;
  /// Returns the paths of the reader's files and folders. Throws UserError if one is not found.
  virtual std::vector<std::string> paths(const ReadRequest& request) const;
  /// Returns the files that the reader's files refer to and that are also part of the data, such as the
  /// images that a table lists.
  virtual FileListing named_files(const ReadRequest& /*request*/) const { return {}; }
  /// Opens a file that is not in the configuration like the reader's own files: with the columns of open().
  /// Returns nullopt if this reader does not support such files.
  virtual std::optional<SourceColumns> open_other(const std::string& /*path*/, FileFormat /*format*/,
                                                  const TextOptions& /*text*/,
                                                  const ReadRequest& /*request*/) const {
    return std::nullopt;
  }
  /// Returns why rows of this reader cannot become windows with these options; "" if they can.
  virtual std::string why_no_windows(const WindowsOptions& windows) const;
  /// Returns true if the files determine the shape of samples; otherwise the request does.
  virtual bool has_shapes() const { return true; }
  /// Returns how many samples after each sample share target values with it, if samples are consecutive parts
  /// of a text. Drawn splits then take the last samples instead of random ones. Returns nullopt for
  /// independent samples.
  virtual std::optional<int64_t> overlap() const { return std::nullopt; }
  /// Returns, for each input of the model that gets tokens of text, the number of ids that it may contain.
  virtual std::vector<std::optional<int64_t>> token_ids(const std::vector<TensorSpec>& inputs) const {
    return std::vector<std::optional<int64_t>>(inputs.size());
  }
  /// Returns the number of classes of the only target if the options determine it. Returns nullopt if the
  /// files do.
  virtual std::optional<int64_t> target_classes() const { return std::nullopt; }
  /// Returns true if the opened files have SourceColumns::weights.
  virtual bool has_weights() const { return false; }
  /// Returns true if a sample may have several of the target's classes: the target is 0 or 1 for each class.
  virtual bool has_labels() const { return false; }
  /// Returns how the reader reads delimited text; nullopt if it reads other files.
  virtual std::optional<CsvFormat> text_format() const { return std::nullopt; }
  /// Returns how the reader reads images; nullopt if it reads other files.
  virtual std::optional<PictureOptions> picture_options() const { return std::nullopt; }
  /// Returns the meaning of the targets' pixels if the targets are images, which are augmented like the
  /// inputs; nullopt for other targets.
  virtual std::optional<TargetPicture> target_picture() const { return std::nullopt; }
  /// Returns how the pixels of target images name classes, if target_picture() is classes.
  virtual MaskClasses mask_classes() const { return {}; }
};

template <>
const Registry<Reader>& registry<Reader>();

// Each reader registers itself; readers.cpp lists them.
void add_idx(Registry<Reader>& table);
void add_npy(Registry<Reader>& table);
void add_csv(Registry<Reader>& table);
void add_hdf5(Registry<Reader>& table);
void add_cifar10(Registry<Reader>& table);
void add_synthetic(Registry<Reader>& table);
void add_images(Registry<Reader>& table);
void add_webdataset(Registry<Reader>& table);
void add_text(Registry<Reader>& table);

}  // namespace dtrain

// Readers, which read samples from files of one format.
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
  evaluation,  // a labeled file that is not in the configuration; it may have other columns
  prediction,  // like `evaluation`, but targets and weights are not read
};

/// A request to a reader: the inputs and targets to open, and the location of the files. `inputs` and
/// `targets` describe the columns before the transforms. Readers of formats that do not determine the shape
/// of a sample (csv, synthetic) make columns of the shapes in `inputs` and `targets`.
struct ReadRequest {
  /// Folder in which relative names are looked up, before $DTRAIN_DATA; "" means the folder of `place`.
  std::string root;
  Mark place;  // location of the split in the configuration
  std::vector<TensorSpec> inputs, targets;
  /// Facts about the training split, such as the names of the classes. All other files are read according to
  /// these facts. If `facts` is empty, the reader follows its options and determines the facts from its
  /// files.
  SourceFacts facts;
  FileUse use = FileUse::split;
  /// Options of the windows if each sample is a window of several rows; null otherwise. They name the columns
  /// by which the rows are sorted, and say whether the inputs of a csv reader include the targets.
  const WindowsOptions* windows = nullptr;
  /// The fraction of the samples that the other splits take from the end of this split. Only readers with an
  /// overlap() use this number: they must not learn a vocabulary from these samples.
  double held_out = 0;

  /// Returns the path of a file. Throws UserError if the file is empty or is not in the folder of the data.
  std::string find(const std::string& file_name) const;
  /// Like find(), but the file may be empty. Throws UserError if the file is not in the folder of the data.
  std::string find_any(const std::string& file_name) const;
  /// Returns a source location with which find_file() searches the same folder as find().
  Mark folder() const;
  /// Throws UserError with this message.
  [[noreturn]] void fail(const std::string& message) const;
  /// Like fail(), but the error has the location `mark` in the configuration, unless the configuration does
  /// not name the file that is read.
  [[noreturn]] void fail_at(const Mark& mark, const std::string& message) const;
  /// Returns the location of an error about the option at `mark`: `mark` itself, or no location if the
  /// configuration does not name the file that is read.
  Mark at(const Mark& mark) const { return use == FileUse::split ? mark : Mark(); }
};

/// Format of a file that is given for predictions. The first bytes of the file determine it. A folder counts
/// as `picture`.
enum class FileFormat { hdf5, npy, idx, picture, tar, text, other };

/// A reader with its options. Immutable, so any thread may call it.
class Reader {
 public:
  virtual ~Reader() = default;
  /// Opens one column for each input of the request, then one for each target, then the columns that `by` and
  /// `time` of request.windows name. All columns have the same number of rows. Throws UserError if a file
  /// does not have the expected format. The message has the path of the file, the expected content and the
  /// found content.
  virtual SourceColumns open(const ReadRequest& request) const = 0;
  /// Returns the names of the reader's files and folders as written in the configuration.
  virtual std::vector<std::string> files() const = 0;
  /// Returns the paths of the reader's files and folders. Throws UserError that lists all missing ones.
  virtual std::vector<std::string> paths(const ReadRequest& request) const;
  /// Returns the files that the reader's files refer to and that are also part of the data, such as the
  /// images that a table lists.
  virtual FileListing named_files(const ReadRequest& /*request*/) const { return {}; }
  /// Opens a file that is not in the configuration, in the same way as the reader's own files, and returns
  /// the same columns as open(). Returns nullopt if this reader does not support such files.
  virtual std::optional<SourceColumns> open_other(const std::string& /*path*/, FileFormat /*format*/,
                                                  const TextOptions& /*text*/,
                                                  const ReadRequest& /*request*/) const {
    return std::nullopt;
  }
  /// Returns the reason why windows with these options cannot be made of the rows of this reader, or "" if
  /// they can.
  virtual std::string why_no_windows(const WindowsOptions& windows) const;
  /// Returns true if the files determine the shape of a sample, and false if the request determines it.
  virtual bool has_shapes() const { return true; }
  /// If samples are consecutive parts of a text, returns the number of following samples that share target
  /// values with a sample. In this case, splits that are drawn from the training split take its last samples
  /// instead of random samples. Returns nullopt if samples are independent.
  virtual std::optional<int64_t> overlap() const { return std::nullopt; }
  /// Returns one number for each input of the model: the number of different token ids if the input gets
  /// tokens of text, else nullopt.
  virtual std::vector<std::optional<int64_t>> token_ids(const std::vector<TensorSpec>& inputs) const {
    return std::vector<std::optional<int64_t>>(inputs.size());
  }
  /// Returns the number of classes of the only target if the options determine it, and nullopt if the files
  /// determine it.
  virtual std::optional<int64_t> target_classes() const { return std::nullopt; }
  /// Returns true if the opened files have SourceColumns::weights.
  virtual bool has_weights() const { return false; }
  /// Returns true if a sample may belong to several classes. The target then has one number for each class: 1
  /// if the sample belongs to the class, else 0.
  virtual bool has_labels() const { return false; }
  /// Returns how the reader reads delimited text; nullopt if it reads other files.
  virtual std::optional<CsvFormat> text_format() const { return std::nullopt; }
  /// Returns how the reader reads images; nullopt if it reads other files.
  virtual std::optional<PictureOptions> picture_options() const { return std::nullopt; }
  /// If the targets are images, returns the meaning of their pixels. Target images are augmented like the
  /// input images. Returns nullopt for other targets.
  virtual std::optional<TargetPicture> target_picture() const { return std::nullopt; }
  /// Returns how the pixels of target images represent classes. Used only if target_picture() returns
  /// `classes`.
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

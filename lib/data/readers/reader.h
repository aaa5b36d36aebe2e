// Readers: the kinds of files that samples come from.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/tensor_spec.h"
#include "config/registry.h"
#include "data/columns/column.h"
#include "data/columns/source_columns.h"
#include "data/files/folder_listing.h"
#include "data/pictures/picture_options.h"
#include "data/readers/csv_table.h"

namespace dtrain {

struct TextOptions;  // data/dataset_spec.h

/// What files are opened for.
enum class FileUse {
  split,       // a split of the configuration
  evaluation,  // a labelled file that the configuration does not name: it may have other columns, too
  prediction,  // the same, without targets and weights, which are not read
};

/// Says where a reader finds its files, and for which inputs and targets it opens them. `inputs` and
/// `targets` say what the columns should be before the transforms: readers of formats that leave a choice
/// (csv, synthetic) go by it.
struct ReadRequest {
  /// Relative names are looked up here, then under $DTRAIN_DATA; "" stands for the folder of `place`.
  std::string root;
  Mark place;  // of the split in the configuration
  std::vector<TensorSpec> inputs, targets;
  /// What is known of the training split, by which other files are read; empty: the options decide, and the
  /// reader finds out.
  SourceFacts facts;
  FileUse use = FileUse::split;

  /// The path at which a file is found.
  std::string find(const std::string& file_name) const;
  /// A place in the folder by which find() goes.
  Mark folder() const;
  /// Throws UserError with this message.
  [[noreturn]] void fail(const std::string& message) const;
};

/// What a path that is predicted from leads to, by its first bytes; a folder is one of pictures.
enum class FileFormat { hdf5, npy, idx, picture, tar, text, other };

/// Holds a reader's options. Immutable; any thread may open it.
class Reader {
 public:
  virtual ~Reader() = default;
  /// Opens one column for each of the request's inputs and targets, in that order, all of the same number of
  /// rows. Throws UserError for a file that is not what it is said to be, with its path, what was expected
  /// and what was found.
  virtual SourceColumns open(const ReadRequest& request) const = 0;
  /// The names of the reader's files and folders, as they are written in the configuration.
  virtual std::vector<std::string> files() const = 0;
  /// Where they stand. Throws UserError where they are not found.
  virtual std::vector<std::string> paths(const ReadRequest& request) const;
  /// The files that those name, which are as much a part of the data: the pictures of a table.
  virtual FileListing named_files(const ReadRequest& /*request*/) const { return {}; }
  /// Opens a file that the configuration does not name, as the reader opens its own: one column for each of
  /// the request's inputs and targets. Nothing where this reader reads no such file.
  virtual std::optional<SourceColumns> open_other(const std::string& /*path*/, FileFormat /*format*/,
                                                  const TextOptions& /*text*/,
                                                  const ReadRequest& /*request*/) const {
    return std::nullopt;
  }
  /// Whether the files say what shape samples have; else they have the one that a request says.
  virtual bool has_shapes() const { return true; }
  /// Whether what it opens has SourceColumns::weights.
  virtual bool has_weights() const { return false; }
  /// How the reader reads delimited text; nothing where it reads other files.
  virtual std::optional<CsvFormat> text_format() const { return std::nullopt; }
  /// How the reader reads pictures; nothing where it reads other files.
  virtual std::optional<PictureOptions> picture_options() const { return std::nullopt; }
};

template <>
const Registry<Reader>& registry<Reader>();

// Each reader adds itself; readers.cpp lists them.
void add_idx(Registry<Reader>& table);
void add_npy(Registry<Reader>& table);
void add_csv(Registry<Reader>& table);
void add_hdf5(Registry<Reader>& table);
void add_cifar10(Registry<Reader>& table);
void add_synthetic(Registry<Reader>& table);
void add_images(Registry<Reader>& table);
void add_webdataset(Registry<Reader>& table);

}  // namespace dtrain

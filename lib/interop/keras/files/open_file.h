// Opens Keras files with libhdf5: .h5, .weights.h5, and the weights inside .keras archives.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/json.h"
#include "checkpoint/file.h"
#include "checkpoint/keras_layout.h"
#include "hdf5/hdf5_heap.h"
#include "hdf5/hdf5_session.h"

namespace dtrain {

/// The parts of a file that are not arrays.
struct KerasFileFacts {
  std::string keras_version, backend;  ///< "" if not in the file
  Json model_config;                   ///< {class_name, config}; null in a weight file
  Json training_config;  ///< Keras 2's training_config or Keras 3's compile_config; null if not compiled
};

/// An open file. It holds the process's Hdf5Session, so a thread can have only one at a time.
class OpenKerasFile {
 public:
  /// Throws UserError if Keras did not write the file. The error contains the path, the expected content and
  /// the content found.
  explicit OpenKerasFile(const std::string& path);

  const std::string& path() const { return path_; }
  hid_t file() const { return file_; }
  const Hdf5Heap& heap() const { return *heap_; }
  /// Returns the HDF5 file inside an archive. If the file is not an archive, the result contains no data.
  const Bytes& image() const { return image_; }
  KerasLayout layout() const { return layout_; }
  const KerasFileFacts& facts() const { return facts_; }
  /// Opens the group that contains the layers' weights: /model_weights or the root.
  Hdf5Handle open_weights() const;

 private:
  void open();
  void open_archive();
  void read_attributes();

  std::string path_;
  Hdf5Session session_;
  Bytes image_;  ///< the HDF5 file inside an archive; without data if the file is not an archive
  Hdf5Handle file_;
  std::optional<Hdf5References> references_;
  std::optional<Hdf5Heap> heap_;
  KerasLayout layout_ = KerasLayout::none;
  KerasFileFacts facts_;
};

}  // namespace dtrain

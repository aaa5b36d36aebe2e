// Files of Keras's that libhdf5 has open: .h5, .weights.h5, and the weights inside .keras archives.
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

/// The parts of a file that are no arrays.
struct KerasFileFacts {
  std::string keras_version, backend;  ///< "" if the file does not say
  Json model_config;                   ///< {class_name, config}; null in a file of weights alone
  Json training_config;  ///< Keras 2's training_config or Keras 3's compile_config; null if not compiled
};

/// One open file. Holds the process's Hdf5Session, so a thread has at most one of these.
class OpenKerasFile {
 public:
  /// Throws UserError, with the path, what was expected and what was found, for a file that Keras did not
  /// write.
  explicit OpenKerasFile(const std::string& path);

  const std::string& path() const { return path_; }
  hid_t file() const { return file_; }
  const Hdf5Heap& heap() const { return *heap_; }
  /// The HDF5 file inside an archive; no data for a file that is no archive.
  const Bytes& image() const { return image_; }
  KerasLayout layout() const { return layout_; }
  const KerasFileFacts& facts() const { return facts_; }
  /// Opens the group that the layers' weights are in: /model_weights, or the root.
  Hdf5Handle open_weights() const;

 private:
  void open();
  void open_archive();
  void read_attributes();

  std::string path_;
  Hdf5Session session_;
  Bytes image_;  ///< the HDF5 file inside an archive
  Hdf5Handle file_;
  std::optional<Hdf5References> references_;
  std::optional<Hdf5Heap> heap_;
  KerasLayout layout_ = KerasLayout::none;
  KerasFileFacts facts_;
};

}  // namespace dtrain

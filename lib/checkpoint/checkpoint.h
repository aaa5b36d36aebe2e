// Checkpoints: HDF5 files that contain a model, its optimizer state and all counters of a run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/dtype.h"
#include "base/json.h"
#include "base/location.h"
#include "base/shape.h"

namespace dtrain {

/// A non-owning reference to a named array in host memory, row-major.
struct ArrayRef {
  std::string name;
  Shape shape;
  DType dtype = DType::float32;
  const void* data = nullptr;  ///< may be null if the shape has no elements

  size_t bytes() const { return static_cast<size_t>(shape.elements()) * bytes_of(dtype); }
};

/// A layer's weights, both trainable and non-trainable. The names (such as "kernel") and the array layouts
/// are the same as in Keras.
struct LayerWeights {
  std::string layer;
  std::vector<ArrayRef> weights;
  std::string keras_name = "";  ///< name of the layer in Keras; "" if it equals `layer`
};

/// A slot (state variable) of the optimizer. It has one array per trained weight. The name of the array is
/// the name of the weight, "<layer>/<weight>".
struct OptimizerSlot {
  std::string name;
  std::vector<ArrayRef> arrays;
};

/// The content of a checkpoint. Does not own the arrays.
struct CheckpointContent {
  std::vector<LayerWeights> layers;  ///< in Keras's order, including layers without weights
  Json model_config;                 ///< Keras's {class_name, config}
  Json training_config;              ///< Keras's loss, metrics and optimizer; null if not available
  std::vector<OptimizerSlot> slots;
  Json state;  ///< seed, step, position in the epoch and partial sums; float64 values are stored exactly
  std::string history;      ///< content of metrics.jsonl
  std::string tables;       ///< content of tables.jsonl; "" if the run has no such file
  std::string config_yaml;  ///< the resolved configuration
};

/// Writes a checkpoint atomically: an existing file at `location` is replaced only when the new file is
/// complete and on disk. The same content always produces the same bytes. Also removes temporary files that
/// crashed writers left in the directory. Throws NoSpace (base/files/new_file.h) if the disk is full, and
/// Error with the path and the reason if the file cannot be written for another reason.
void save_checkpoint(const Location& location, const CheckpointContent& content);

/// A loaded checkpoint. The object owns the memory of the arrays in `content()`, so the arrays can be copied
/// to a device or saved again while the object exists. The arrays are aligned to 8 bytes. The object is
/// immutable, so several threads may read it.
class Checkpoint {
 public:
  /// Reads and verifies the whole file. Throws UserError if the file is missing, damaged or not a dtrain
  /// checkpoint. The error contains the path, the expected content and the content found.
  static Checkpoint load(const std::string& path);
  /// Like load(), but takes the bytes of a file that is already in memory. The bytes must be aligned like
  /// memory from operator new. `path`: the name of the file for messages.
  static Checkpoint from_bytes(const std::string& path, std::shared_ptr<const std::byte[]> bytes,
                               size_t size);

  Checkpoint(Checkpoint&&) = default;
  Checkpoint& operator=(Checkpoint&&) = default;

  /// Returns another object for the same bytes in memory. Does not read the file again.
  Checkpoint reopened() const { return from_bytes(path_, file_, file_bytes_); }

  const std::string& path() const { return path_; }
  size_t file_bytes() const { return file_bytes_; }
  /// Returns the bytes of the whole file.
  std::span<const std::byte> file() const { return {file_.get(), file_bytes_}; }
  const CheckpointContent& content() const { return content_; }

  /// Returns the weight with the name "<layer>/<weight>", or null if there is none.
  const ArrayRef* weight(std::string_view name) const;
  /// Returns the slot's array for the weight "<layer>/<weight>", or null if there is none.
  const ArrayRef* slot(std::string_view slot, std::string_view weight) const;

 private:
  Checkpoint() = default;

  std::string path_;
  size_t file_bytes_ = 0;
  std::shared_ptr<const std::byte[]> file_;
  CheckpointContent content_;
  std::unordered_map<std::string, const ArrayRef*> weights_;
  std::unordered_map<std::string, const ArrayRef*> slots_;  ///< keys: "<slot>/<layer>/<weight>"
};

/// Returns true if the file begins like a dtrain checkpoint. The rest of the file is not checked and may be
/// damaged.
bool begins_as_checkpoint(const Location& file);

/// Returns the file name of the checkpoint of a step: "ckpt-00000782.h5" for step 782.
std::string checkpoint_name(int64_t step);

/// Returns the step from a file name made by checkpoint_name(); nullopt for other names.
std::optional<int64_t> checkpoint_step(const std::string& name);

/// Returns the paths of the checkpoints in a directory, ordered by step. Returns an empty list if the
/// directory does not exist.
std::vector<std::string> list_checkpoints(const std::string& directory);

/// Returns the steps of the checkpoints in a directory in ascending order. Returns an empty list if the
/// directory does not exist.
std::vector<int64_t> checkpoint_steps(const Location& directory);

/// Returns the version of the HDF5 library at build time, such as "1.10.8". If the version at run time is
/// different, the text contains it, too.
std::string hdf5_version();

}  // namespace dtrain

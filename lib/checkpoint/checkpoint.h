// Checkpoints: an HDF5 file with a model, its optimizer and all counters of a run.
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

/// A layer's weights, trainable or not, with names such as "kernel" and in Keras's array layouts.
struct LayerWeights {
  std::string layer;
  std::vector<ArrayRef> weights;
  std::string keras_name = "";  ///< name of the layer in Keras; "" if it equals `layer`
};

/// A slot (state variable) of the optimizer: one array per trained weight, named "<layer>/<weight>".
struct OptimizerSlot {
  std::string name;
  std::vector<ArrayRef> arrays;
};

/// The content of a checkpoint. Does not own the arrays.
struct CheckpointContent {
  std::vector<LayerWeights> layers;  ///< in Keras's order, including layers without weights
  Json model_config;                 ///< Keras's {class_name, config}
  Json training_config;              ///< Keras's loss, metrics and optimizer; null if there are none
  std::vector<OptimizerSlot> slots;
  Json state;               ///< seed, step, position in the epoch, partial sums; doubles are stored exactly
  std::string history;      ///< content of metrics.jsonl
  std::string tables;       ///< content of tables.jsonl; "" if there is none
  std::string config_yaml;  ///< the resolved configuration
};

/// Writes a checkpoint atomically: an existing file at `location` is replaced only once the new one is
/// complete and on disk. The same content produces the same bytes. Removes temporary files that crashed
/// writers left in the directory. Throws Error with the path and the reason if the file cannot be written;
/// NoSpace (base/files/new_file.h) for lack of disk space.
void save_checkpoint(const Location& location, const CheckpointContent& content);

/// A loaded checkpoint. Owns the bytes that the arrays of `content()` point to, so the arrays can be copied
/// to a device or saved again while this object lives. The arrays are aligned to 8 bytes. Immutable: any
/// thread may read it.
class Checkpoint {
 public:
  /// Reads and verifies the whole file. Throws UserError with the path and the expected and found content if
  /// the file is missing, damaged or not a dtrain checkpoint.
  static Checkpoint load(const std::string& path);
  /// Like load(), for the bytes of a file, which must be aligned like memory from operator new. `path`: the
  /// file's name in messages.
  static Checkpoint from_bytes(const std::string& path, std::shared_ptr<const std::byte[]> bytes,
                               size_t size);

  Checkpoint(Checkpoint&&) = default;
  Checkpoint& operator=(Checkpoint&&) = default;

  const std::string& path() const { return path_; }
  size_t file_bytes() const { return file_bytes_; }
  /// Returns the bytes of the whole file.
  std::span<const std::byte> file() const { return {file_.get(), file_bytes_}; }
  const CheckpointContent& content() const { return content_; }

  /// Returns the weight "<layer>/<weight>", or null.
  const ArrayRef* weight(std::string_view name) const;
  /// Returns the slot's array for the weight "<layer>/<weight>", or null.
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

/// Returns whether a file starts like a dtrain checkpoint; the rest of the file may be damaged.
bool begins_as_checkpoint(const Location& file);

/// Returns the file name of a step's checkpoint: "ckpt-00000782.h5" for step 782.
std::string checkpoint_name(int64_t step);

/// Returns the step from a file name made by checkpoint_name(); nullopt for other names.
std::optional<int64_t> checkpoint_step(const std::string& name);

/// Returns the paths of the checkpoints in a directory, ordered by step; none if the directory does not
/// exist.
std::vector<std::string> list_checkpoints(const std::string& directory);

/// Returns the steps of the checkpoints in a directory, ascending; none if the directory does not exist.
std::vector<int64_t> checkpoint_steps(const Location& directory);

/// Returns the version of the HDF5 library at build time, such as "1.10.8", plus the version at run time if
/// it differs.
std::string hdf5_version();

}  // namespace dtrain

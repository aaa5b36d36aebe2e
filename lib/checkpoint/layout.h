// The file layout of a checkpoint.
//
//   bytes 0 to 511           dtrain's header, in HDF5's user block: the format, and the length and checksum
//                            of the HDF5 file
//   from byte 512            the HDF5 file:
//     /                      attributes keras_version, backend, model_config and, optionally, training_config
//     /model_weights         attributes layer_names, keras_version, backend; the layers in Keras's order
//       /<layer>             attribute weight_names: "<layer>/<weight>:0", each a dataset in the group
//     /dtrain                attributes format and layer_names: dtrain's names of the layers above, in the
//                            same order
//       /state               JSON text, a uint8 dataset
//       /config              YAML text, a uint8 dataset
//       /history             content of metrics.jsonl, a uint8 dataset; earlier versions stored it in
//                            the state
//       /tables              content of tables.jsonl, a uint8 dataset; only if there is any
//       /optimizer           attribute slot_names
//         /<slot>            attribute weight_names: "<layer>/<weight>:0", each a dataset in the group
//
// Datasets are contiguous and little-endian. As in Keras, a list of names larger than kAttributeBytes is
// split into the attributes name0, name1, ...
//
// Keras assigns weights by the position of their layer, and its layer names cannot contain '/'. In format 1
// the layers were in the configuration's order under dtrain's names, and /dtrain had no layer_names.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "checkpoint/hash.h"

namespace dtrain {

inline constexpr int kFormat = 2;
inline constexpr size_t kHeaderBytes = 512;
inline constexpr size_t kAttributeBytes = 64512;
inline constexpr size_t kAlignment = 8;  ///< alignment of each dataset's first byte

inline constexpr char kWeights[] = "/model_weights";
inline constexpr char kOwn[] = "/dtrain";
inline constexpr char kOptimizer[] = "/dtrain/optimizer";
inline constexpr char kState[] = "/dtrain/state";
inline constexpr char kHistory[] = "/dtrain/history";
inline constexpr char kTables[] = "/dtrain/tables";
inline constexpr char kConfig[] = "/dtrain/config";
inline constexpr char kLayerNames[] = "layer_names";
inline constexpr char kWeightNames[] = "weight_names";
inline constexpr char kSlotNames[] = "slot_names";
inline constexpr char kModelConfig[] = "model_config";
inline constexpr char kTrainingConfig[] = "training_config";
inline constexpr char kSuffix[] = ":0";  ///< suffix of each array's name, as in TensorFlow

/// Returns the header (kHeaderBytes) of a checkpoint whose HDF5 file consists of these parts.
std::string make_header(Parts image);

/// Returns the format of a checkpoint. Throws UserError unless the file is a header followed by exactly the
/// bytes that it describes.
int verify_header(const std::string& path, std::span<const std::byte> file);

}  // namespace dtrain

// Where things stand in a checkpoint.
//
//   bytes 0 to 511           dtrain's header, in HDF5's user block: the format, and the length and the
//                            checksum of all that follows
//   byte 512 and on          the HDF5 file:
//     /                      attributes keras_version, backend, model_config and, perhaps, training_config
//     /model_weights         attributes layer_names, keras_version, backend; the layers in Keras's order
//       /<layer>             attribute weight_names: "<layer>/<weight>:0", each a dataset in the group
//     /dtrain                attributes format and layer_names: dtrain's own names of the layers above, in
//                            the same order
//       /state               JSON text, a uint8 dataset
//       /config              YAML text, a uint8 dataset
//       /history             the lines of metrics.jsonl, a uint8 dataset; earlier versions kept them in
//                            the state
//       /tables              the lines of tables.jsonl, a uint8 dataset; only where there are some
//       /optimizer           attribute slot_names
//         /<slot>            attribute weight_names: "<layer>/<weight>:0", each a dataset in the group
//
// Datasets are contiguous and little endian. An attribute of names that is larger than kAttributeBytes is
// split into name0, name1, ..., as Keras does.
//
// Keras takes the weights by their position among the layers, and knows layers by names without '/'. In
// format 1 the layers stood in the configuration's order under dtrain's names, and /dtrain had no
// layer_names.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "checkpoint/hash.h"

namespace dtrain {

inline constexpr int kFormat = 2;
inline constexpr size_t kHeaderBytes = 512;
inline constexpr size_t kAttributeBytes = 64512;
inline constexpr size_t kAlignment = 8;  ///< of the datasets' first bytes

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
inline constexpr char kSuffix[] = ":0";  ///< each array's name ends in it, as in TensorFlow

/// The first kHeaderBytes of a checkpoint whose HDF5 file has these parts.
std::string make_header(Parts image);

/// Returns the format of a checkpoint. Throws UserError unless the file is a header and the very bytes that
/// the header was made for.
int verify_header(const std::string& path, std::span<const std::byte> file);

}  // namespace dtrain

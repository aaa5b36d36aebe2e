// TensorBoard event files: records in TFRecord framing, each a tensorflow.Event encoded as Protocol Buffers.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dtrain {

/// Returns the CRC-32C (Castagnoli).
uint32_t crc32c(std::string_view bytes);
/// Returns a record as stored in a file: length, masked CRC, data, masked CRC.
std::string tf_record(std::string_view data);

// The functions below return encoded events. Times are in seconds since 1970.

/// Returns the first event of a file, which contains the file version.
std::string version_event(double time);
/// Returns an event that tells readers to discard data of steps from `step` on, because the run continues
/// from an earlier step.
std::string session_start_event(double time, int64_t step);
/// Returns one summary with a value (as a float) for each tag.
std::string scalars_event(double time, int64_t step, std::span<const std::pair<std::string, double>> scalars);

/// The distribution of values, as in HistogramProto.
struct Histogram {
  double min = 0, max = 0, sum = 0, sum_squares = 0;
  int64_t count = 0;
  std::vector<double> limits, counts;  // upper ends of the buckets, and the number of values in each
};
/// Returns a histogram with 30 buckets of equal width from the minimum to the maximum. Skips values that are
/// not finite.
Histogram histogram_of(std::span<const float> values);
std::string histogram_event(double time, int64_t step, const std::string& tag, const Histogram& histogram);

/// A node of a graph in TensorBoard. Slashes in a name separate scopes.
struct EventGraphNode {
  std::string name, op;
  std::vector<std::string> inputs;           // "name", or "name:1" for an output other than the first
  std::vector<std::vector<int64_t>> shapes;  // shapes of the outputs; -1 for a variable size
  int64_t parameters = 0;
};
std::string graph_event(double time, std::span<const EventGraphNode> nodes);
/// Returns an image event with a PNG.
std::string image_event(double time, int64_t step, const std::string& tag, int64_t height, int64_t width,
                        int64_t channels, std::string_view png);

/// Returns the size of the file's valid prefix: intact records with steps up to `last_step`. Records without
/// a step have step 0. Steps ascend in a file, so the first other record ends the prefix.
size_t records_up_to(std::string_view file, int64_t last_step);

}  // namespace dtrain

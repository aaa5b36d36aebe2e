// TensorBoard's event files. They consist of records in the TFRecord format, and each record is a
// tensorflow.Event in Protocol Buffers encoding.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dtrain {

/// Returns the CRC-32C (Castagnoli) of the bytes.
uint32_t crc32c(std::string_view bytes);
/// Returns a record in the format of the file: length, masked CRC of the length, data, masked CRC of the
/// data.
std::string tf_record(std::string_view data);

// The functions below return encoded events. Times are in seconds since 1970.

/// Returns the first event of a file, which contains the file version.
std::string version_event(double time);
/// Returns an event that tells readers to discard the data of `step` and all later steps. It is written if
/// the run continues from an earlier step.
std::string session_start_event(double time, int64_t step);
/// Returns one event with a value (as a float) for each tag.
std::string scalars_event(double time, int64_t step, std::span<const std::pair<std::string, double>> scalars);

/// The distribution of values, as in HistogramProto.
struct Histogram {
  double min = 0, max = 0, sum = 0, sum_squares = 0;
  int64_t count = 0;
  std::vector<double> limits, counts;  // upper limit of each bucket, and number of values in it
};
/// Returns a histogram with 30 buckets of equal width from the minimum to the maximum. Skips values that are
/// not finite.
Histogram histogram_of(std::span<const float> values);
std::string histogram_event(double time, int64_t step, const std::string& tag, const Histogram& histogram);

/// A node of a graph in TensorBoard. In a name, slashes separate the nested scopes.
struct EventGraphNode {
  std::string name, op;
  std::vector<std::string> inputs;           // "name" for the first output of a node, "name:1" for the second
  std::vector<std::vector<int64_t>> shapes;  // shapes of the outputs; a size of -1 is variable
  int64_t parameters = 0;
};
std::string graph_event(double time, std::span<const EventGraphNode> nodes);
/// Returns an event with an image. `png` is the content of a PNG file.
std::string image_event(double time, int64_t step, const std::string& tag, int64_t height, int64_t width,
                        int64_t channels, std::string_view png);

/// Returns the number of bytes to keep at the beginning of the file. These bytes are intact records of steps
/// up to `last_step`. A record without a step counts as step 0. Steps ascend in a file, so the kept part ends
/// before the first record that is damaged or has a later step.
size_t records_up_to(std::string_view file, int64_t last_step);

}  // namespace dtrain

#include "report/tensorboard.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>
#include <unistd.h>

#include <fmt/format.h>

#include "base/files/append_file.h"
#include "report/event_file.h"
#include "report/input_pictures.h"

namespace dtrain {

namespace fs = std::filesystem;

namespace {

constexpr const char *kTrain = "train", *kValidation = "validation", *kSteps = "steps";
constexpr size_t kMostWaiting = size_t{64} << 10;  // bytes

double time_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// Returns the name of a new event file. The time precedes the host name, because TensorBoard reads the files
/// of a folder in alphabetical order. The microseconds order files that were created in the same second, by a
/// run and by its continuation.
std::string make_file_name() {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host = {};
  const auto now = std::chrono::duration_cast<std::chrono::microseconds>(
                       std::chrono::system_clock::now().time_since_epoch())
                       .count();
  return fmt::format("events.out.tfevents.{:010}.{}.{:06}.{}.dtrain", now / 1'000'000, host.data(),
                     now % 1'000'000, ::getpid());
}

std::vector<EventGraphNode> nodes_of(const Graph& graph) {
  std::vector<EventGraphNode> nodes;
  for (const GraphNode& node : graph.nodes) {
    EventGraphNode made{node.name, node.kind, {}, {}, 0};
    for (const ValueRef input : node.inputs) made.inputs.push_back(graph.spec(input).name);
    for (size_t k = 0; k < node.readable_outputs(); ++k) {
      const Shape& output = node.outputs[k].shape;
      std::vector<int64_t> shape{-1};  // the batch axis
      for (size_t i = 0; i < output.rank(); ++i) shape.push_back(output[i]);
      made.shapes.push_back(std::move(shape));
    }
    if (node.shared_with < 0)
      for (const ParameterSpec& parameter : node.parameters) made.parameters += parameter.shape.elements();
    nodes.push_back(std::move(made));
  }
  return nodes;
}

}  // namespace

TensorBoard::TensorBoard(RunDirectory directory, const TensorboardOptions& options, int64_t epoch,
                         int64_t step, Warn warn)
    : directory_(std::move(directory)),
      options_(options),
      epoch_(epoch),
      step_(step),
      warn_(std::move(warn)),
      file_name_(make_file_name()) {
  try {
    cut(kTrain, epoch);
    cut(kValidation, epoch);
    cut(kSteps, step);
  } catch (const std::exception& error) {
    warn_(fmt::format("{}; TensorBoard may show steps twice", error.what()));
  }
}

void TensorBoard::cut(const std::string& folder, int64_t last_step) {
  std::error_code error;
  for (const fs::directory_entry& entry :
       fs::directory_iterator(directory_.tensorboard_directory() + "/" + folder, error)) {
    if (!is_event_file(entry.path().filename().string())) continue;
    const std::ifstream file(entry.path(), std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    const std::string bytes = text.str();
    const size_t kept = records_up_to(bytes, last_step);
    if (kept < bytes.size()) fs::resize_file(entry.path(), kept, error);
  }
}

void TensorBoard::write(const std::string& folder, const std::string& records) {
  try {
    const std::string path = directory_.tensorboard_directory() + "/" + folder;
    std::string head;
    // If begun_ is true but the file does not exist, the run directory has been removed and created again
    // since the last call.
    if (!begun_[folder] || !fs::exists(path)) {
      fs::create_directories(path);
      head = tf_record(version_event(time_now()));
      const int64_t done = folder == kSteps ? step_ : epoch_;
      if (done > 0) head += tf_record(session_start_event(time_now(), done + 1));
    }
    append_file(path + "/" + file_name_, head + records);
    begun_[folder] = true;
  } catch (const std::exception& error) {
    if (!failed_) warn_(fmt::format("{}; TensorBoard's data will be incomplete", error.what()));
    failed_ = true;
  }
}

void TensorBoard::add_model(const Graph& graph, const Dataset& samples, uint64_t seed) {
  if (step_ > 0) return;
  if (options_.write_graph) write(kTrain, tf_record(graph_event(time_now(), nodes_of(graph))));
  try {
    const std::vector<TensorSpec> inputs = graph.input_specs();
    for (size_t i = 0; i < inputs.size(); ++i) add_inputs(inputs[i], i, samples, seed);
  } catch (const std::exception& error) {
    warn_(fmt::format("{}; TensorBoard will not show inputs", error.what()));
  }
}

void TensorBoard::add_inputs(const TensorSpec& spec, size_t column, const Dataset& samples, uint64_t seed) {
  const int64_t count = std::min(options_.input_images, samples.size());
  if (count == 0 || !is_picture_input(spec)) return;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t row = i * samples.size() / count;
    const Picture picture = read_picture(samples, column, row, seed);
    write(kTrain, tf_record(image_event(time_now(), 0, fmt::format("{}/{}", spec.name, row), picture.height,
                                        picture.width, picture.channels, picture.png())));
  }
}

void TensorBoard::add_epoch(const Json& record) {
  Scalars train, validation;
  for (const auto& [name, value] : record.entries()) {
    if (name == "epoch" || name == "step" || !(value.is_number() || value.is_string())) continue;
    if (name.starts_with("val_")) {
      validation.emplace_back("epoch_" + name.substr(4), value.as_double());
    } else {
      train.emplace_back("epoch_" + name, value.as_double());
    }
  }
  const int64_t epoch = record.at("epoch").as_int();
  write(kTrain, tf_record(scalars_event(time_now(), epoch, train)));
  if (!validation.empty()) write(kValidation, tf_record(scalars_event(time_now(), epoch, validation)));
  flush();
}

void TensorBoard::add_step(const Progress& progress) {
  const int64_t interval = options_.update_freq.steps;
  if (interval == 0 || progress.global_step % interval != 0) return;
  const std::array<std::pair<std::string, double>, 3> scalars{
      {{"batch_loss", progress.step_loss},
       {"batch_learning_rate", progress.learning_rate},
       {"batch_samples_per_second", progress.samples_per_second}}};
  steps_ += tf_record(scalars_event(time_now(), progress.global_step, scalars));
  if (steps_.size() >= kMostWaiting || Clock::now() - flushed_ > std::chrono::seconds(1)) flush();
}

void TensorBoard::add_histogram(int64_t epoch, const std::string& tag, std::span<const float> values) {
  write(kTrain, tf_record(histogram_event(time_now(), epoch, tag, histogram_of(values))));
}

void TensorBoard::flush() {
  flushed_ = Clock::now();
  if (steps_.empty()) return;
  write(kSteps, steps_);
  steps_.clear();
}

}  // namespace dtrain

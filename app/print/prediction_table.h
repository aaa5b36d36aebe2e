// Predictions as text: a table, or JSON lines, with the names that the run knows.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/dataset.h"
#include "data/files/array_writer.h"
#include "run/run_config.h"

namespace dtrain {

/// Where text goes, piece by piece.
class TextSink {
 public:
  virtual ~TextSink() = default;
  /// Throws Error where it cannot be written.
  virtual void write(std::string_view text) = 0;
  /// Ends the text. Throws Error as write().
  virtual void finish() {}
};

/// A file that appears under its name once it is finished.
std::unique_ptr<TextSink> open_text_file(const std::string& path);
/// Standard output. Text is dropped once its reader has gone away.
std::unique_ptr<TextSink> open_standard_output();

/// One of the model's outputs, as predictions show it.
struct PredictedOutput {
  TensorSpec spec;                        // of one sample; the name is the layer's
  std::string target = {};                // the name of its column in the training file; "" without one
  std::vector<std::string> classes = {};  // by column; two of a lone column, whose number is of the second
  double sum = 1;                         // of the two classes' numbers, where the output has a lone column
  std::optional<double> threshold = {};   // above which the second of two classes is predicted

  bool is_binary() const { return classes.size() == 2 && spec.shape.elements() == 1; }
};

/// An output of the configuration, with the names of its classes. A class without a name has its number.
PredictedOutput predicted_output(const RunConfig& config, size_t head);

enum class TextFormat { csv, json_lines };

/// A line for each sample: its id (or its row), then for each output the class and the number of each class,
/// or the numbers under the target's name. JSON lines have the columns of the CSV table as keys, and an array
/// for an output of several numbers. Not `with_classes`: the numbers alone. Refers to `inputs`.
std::unique_ptr<ArrayWriter> open_prediction_table(std::unique_ptr<TextSink> sink, TextFormat format,
                                                   std::vector<PredictedOutput> outputs, bool with_classes,
                                                   const Dataset& inputs);

}  // namespace dtrain

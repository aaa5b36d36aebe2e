#include "nn/layers/recurrent/recurrent.h"
#include "nn/layers/table.h"

namespace dtrain {
namespace {

class Lstm : public RecurrentLayer {
 public:
  explicit Lstm(const RecurrentOptions& options) : RecurrentLayer(RecurrenceSpec::Kind::lstm, options) {}
};

}  // namespace

void add_lstm(Registry<Layer>& table) {
  table.add<Lstm>(
      "lstm", recurrent_schema(
                  RecurrenceSpec::Kind::lstm,
                  "Long short-term memory (Hochreiter and Schmidhuber 1997): at every step of a sequence, an "
                  "input, a forget and an output gate control the update of a state and a cell state."));
}

}  // namespace dtrain

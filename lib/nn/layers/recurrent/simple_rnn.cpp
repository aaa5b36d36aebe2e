#include "nn/layers/recurrent/recurrent.h"
#include "nn/layers/table.h"

namespace dtrain {
namespace {

class SimpleRnn : public RecurrentLayer {
 public:
  explicit SimpleRnn(const RecurrentOptions& options)
      : RecurrentLayer(RecurrenceSpec::Kind::simple, options) {}
};

}  // namespace

void add_simple_rnn(Registry<Layer>& table) {
  table.add<SimpleRnn>(
      "simple_rnn",
      recurrent_schema(RecurrenceSpec::Kind::simple,
                       "A recurrent layer without gates. At every step of a sequence, the new state is "
                       "activation(input @ kernel + state @ recurrent_kernel + bias)."));
}

}  // namespace dtrain

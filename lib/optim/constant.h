// The learning rate that stays.
#pragma once

#include "optim/schedule.h"

namespace dtrain {

/// For the defaults of optimizers.
Configured<Schedule> constant_rate(double value);

}  // namespace dtrain

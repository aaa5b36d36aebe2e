// The learning rate that stays the same.
#pragma once

#include "optim/schedule.h"

namespace dtrain {

/// A constant schedule, for the defaults of optimizers.
Configured<Schedule> constant_rate(double value);

}  // namespace dtrain

/* exchange_local.h: the exchange of a task that is alone: there is nobody to reach. */
#ifndef TFC_RUNTIME_STEP_EXCHANGE_LOCAL_H
#define TFC_RUNTIME_STEP_EXCHANGE_LOCAL_H

#include "runtime/step/exchange.h"

extern const struct exchange exchange_local;

#endif

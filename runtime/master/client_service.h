/* client_service.h: gives the master service (master.h) what it needs of a task: its entries, nodes and devices. */
#ifndef TFC_RUNTIME_MASTER_CLIENT_SERVICE_H
#define TFC_RUNTIME_MASTER_CLIENT_SERVICE_H

#include "runtime/cluster/cluster.h"
#include "runtime/step/task.h"

struct client_service;
/* Serves clients on the cluster's address until it is destroyed. */
status client_service_create(struct task *task, struct cluster *cluster, struct client_service **out);
/* Before cluster_destroy. Accepts NULL. */
void client_service_destroy(struct client_service *service);

#endif

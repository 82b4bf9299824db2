#!/bin/sh
# Creates the users of the services; after an upgrade, restarts those that run.
set -e
systemd-sysusers brewbench.conf
[ -d /run/systemd/system ] || exit 0
systemctl daemon-reload
systemctl try-restart brewbench.service brewbench-agent.service

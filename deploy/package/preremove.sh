#!/bin/sh
# Stops the services before a removal: "remove" of dpkg, 0 of rpm.
set -e
case $1 in remove | 0) ;; *) exit 0 ;; esac
[ ! -d /run/systemd/system ] || systemctl disable --now brewbench.service brewbench-agent.service

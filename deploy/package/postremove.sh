#!/bin/sh
# Removes the configuration if dpkg is to purge it. The data in /var/lib stays.
set -e
[ ! -d /run/systemd/system ] || systemctl daemon-reload
[ "$1" != purge ] || rm -rf /etc/brewbench

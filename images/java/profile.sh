# shellcheck shell=sh
# Java trusts what is in /etc/openshell-tls/ca-bundle.pem.
JAVA_HOME=$(dirname "$(dirname "$(readlink -f "$(command -v javac)")")")
export JAVA_HOME
if fullsend_trust=$(/usr/local/lib/fullsend/image/trust-bundle); then
  export JAVA_TOOL_OPTIONS="-Djavax.net.ssl.trustStore=$fullsend_trust -Djavax.net.ssl.trustStorePassword=changeit"
fi
unset fullsend_trust

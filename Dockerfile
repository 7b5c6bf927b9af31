# syntax=docker/dockerfile:1
# A cluster in a container:
#   docker build -t mockbroker .
#   docker run --rm -p 9092-9094:9092-9094 -p 9191:9191 mockbroker
# Flags of `mockbroker serve` may follow. Clients of other containers need its name:
# `--advertised-host NAME`, or two listeners (docs/howto/serve.md).

ARG PYTHON=3.13

FROM python:${PYTHON}-slim AS build
WORKDIR /src
COPY requirements/constraints.txt requirements/
COPY pyproject.toml hatch_build.py README.md LICENSE ./
COPY mockbroker mockbroker
COPY protocol protocol
COPY fixtures fixtures
ENV PIP_CONSTRAINT=requirements/constraints.txt \
    PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_NO_CACHE_DIR=1
RUN python -m venv /opt/mockbroker \
 && /opt/mockbroker/bin/pip install . \
 && /opt/mockbroker/bin/python -m compileall -q /opt/mockbroker/lib

FROM python:${PYTHON}-slim
LABEL org.opencontainers.image.title="mockbroker" \
      org.opencontainers.image.description="A whole Kafka cluster in one process, made for testing" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /opt/mockbroker /opt/mockbroker
ENV PATH=/opt/mockbroker/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    MOCKBROKER_ADVERTISED_HOST=localhost
USER 65532:65532
# Three brokers, and the admin port.
EXPOSE 9092 9093 9094 9191
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=5s --timeout=3s --start-period=2s --retries=3 \
  CMD ["python", "-c", "import json, urllib.request; admin = json.load(open('/tmp/mockbroker.json')).get('admin'); admin and urllib.request.urlopen(admin + '/healthz', timeout=2)"]
# Flags that follow the image's name are added; a later flag outranks an earlier one.
ENTRYPOINT ["mockbroker", "serve", "--host", "0.0.0.0", "--allow-remote", "--ready-file", "/tmp/mockbroker.json"]

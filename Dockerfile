# recallite serve in a container; docs/guides/server.md says how to run it.
FROM python:3.12-slim AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY engine engine
COPY kernels kernels
COPY models models
RUN python -m venv /opt/recallite && /opt/recallite/bin/pip install --no-cache-dir '.[server]'

FROM python:3.12-slim
COPY --from=build /opt/recallite /opt/recallite
RUN useradd --uid 10001 --no-create-home recallite && install --directory --owner=10001 --group=10001 --mode=0700 /data
ENV PATH=/opt/recallite/bin:$PATH RECALLITE_DB=/data/memory.db RECALLITE_CACHE_DIR=/data/cache
USER 10001
WORKDIR /data
VOLUME ["/data"]
EXPOSE 7333
HEALTHCHECK --start-period=60s CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:7333/healthz')"]
ENTRYPOINT ["recallite"]
CMD ["serve", "--host", "0.0.0.0"]

# The server on a CPU. See docs/server.md.
FROM python:3.12-slim AS build
RUN apt-get update \
    && apt-get install --yes --no-install-recommends g++ \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY . .
RUN pip wheel --no-cache-dir --wheel-dir /wheels '.[server]'

FROM python:3.12-slim
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir --no-index --find-links /wheels 'mosstalk[server]' \
    && rm -rf /wheels \
    && useradd --create-home --uid 1000 mosstalk \
    && install --directory --owner mosstalk /data
USER mosstalk
ENV MOSSTALK_VOICES=/data/voices MOSSTALK_CACHE=/data/cache HF_HOME=/data/huggingface
VOLUME /data
EXPOSE 8080
# Needs MOSSTALK_API_KEY, as the address is reached from outside the container.
HEALTHCHECK --interval=30s --timeout=15s --start-period=60s CMD \
    ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8080/health', timeout=12)"]
ENTRYPOINT ["mosstalk"]
CMD ["serve", "--host", "0.0.0.0"]

-- What builds did, and how far counts are off.

CREATE TABLE receipts (
    tenant   BLOB NOT NULL,
    turn     BLOB NOT NULL,
    build    INTEGER NOT NULL, -- from 1
    session  BLOB NOT NULL,
    fence    INTEGER NOT NULL,
    body     BLOB NOT NULL,
    reported INTEGER, -- prompt tokens by the provider
    at       INTEGER NOT NULL,
    PRIMARY KEY (tenant, turn, build),
    FOREIGN KEY (tenant, turn) REFERENCES turns (tenant, id)
) WITHOUT ROWID;
CREATE INDEX receipts_session ON receipts (tenant, session, at, build);
CREATE INDEX receipts_reported ON receipts (tenant, session, at, build) WHERE reported IS NOT NULL;

CREATE TABLE calibrations (
    tenant    BLOB NOT NULL,
    model     TEXT NOT NULL,
    tokenizer TEXT NOT NULL,
    version   INTEGER NOT NULL,
    state     BLOB NOT NULL,
    PRIMARY KEY (tenant, model, tokenizer)
) WITHOUT ROWID;

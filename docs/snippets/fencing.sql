-- Quoted by docs/fencing.md. The suite `docs` runs it with psql on a server of its own.
CREATE TABLE reports (id bigint PRIMARY KEY, body text, version bigint NOT NULL DEFAULT 0);
CREATE TABLE fences (resource text PRIMARY KEY, token bigint NOT NULL);

ALTER TABLE reports ADD COLUMN fencing_token bigint NOT NULL DEFAULT 0;

PREPARE save (bigint, bigint, text) AS
UPDATE reports SET body = $3, fencing_token = $1 WHERE id = $2 AND fencing_token <= $1;

PREPARE create_or_save (bigint, bigint, text) AS
INSERT INTO reports (id, body, fencing_token) VALUES ($2, $3, $1)
ON CONFLICT (id) DO UPDATE SET body = excluded.body, fencing_token = excluded.fencing_token
WHERE reports.fencing_token <= excluded.fencing_token;

PREPARE show_token (bigint, text) AS
INSERT INTO fences (resource, token) VALUES ($2, $1)
ON CONFLICT (resource) DO UPDATE SET token = excluded.token WHERE fences.token <= excluded.token;

PREPARE save_version (bigint, bigint, text) AS
UPDATE reports SET body = $3, version = version + 1 WHERE id = $1 AND version = $2;   -- 0 rows: read again

-- What each of them changes; psql prints it, the test compares.
EXECUTE create_or_save (5, 1, 'a'); -- INSERT 0 1
EXECUTE create_or_save (6, 1, 'b'); -- INSERT 0 1
EXECUTE create_or_save (5, 1, 'c'); -- INSERT 0 0
EXECUTE save (6, 1, 'd');           -- UPDATE 1
EXECUTE save (5, 1, 'e');           -- UPDATE 0
EXECUTE show_token (5, 'r');        -- INSERT 0 1
EXECUTE show_token (5, 'r');        -- INSERT 0 1
EXECUTE show_token (4, 'r');        -- INSERT 0 0
EXECUTE save_version (1, 0, 'f');   -- UPDATE 1
EXECUTE save_version (1, 0, 'g');   -- UPDATE 0
